"""Shell text to a tree. Exact for what it reads; whatever it does not know makes the text unreadable.

This is a reader, not a shell: it needs to know which words stand in command position, not what an `if` decides. Every
construct becomes one of five nodes; the words of a command keep their parts, so that what cannot be known stays so.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Union

MAX_CHARACTERS = 16_384
MAX_DEPTH = 40

Node = Union["Simple", "Pipe", "Group", "Loop", "Function"]


class Unreadable(Exception):
    """The text is not read: it is broken, too long or too deep, or uses a form that this reader does not know."""


class Part(NamedTuple):
    """A part of a word: `bare` or `quoted` text, the value of a `variable`, the output of a `script`, or a `number`."""

    kind: str
    text: str = ""
    quoted: bool = False
    script: "Group | None" = None
    default: "tuple[Part, ...]" = ()  # of ${name:-word}: what stands for it, if it is unset
    trim: tuple[str, str] = ("", "")  # of ${name%.txt}: what is cut off, and where


class Word(NamedTuple):
    """A word, as its parts."""

    parts: Sequence[Part]
    start: int
    end: int


class Redirect(NamedTuple):
    """`>`, `>>`, `<`, ... and its target; for a here-document or here-string (`<<`) the word is its text."""

    operator: str
    word: Word


class Simple(NamedTuple):
    """A simple command: assignments, words, redirections, and where it stands in the text."""

    assigns: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    start: int
    end: int


class Pipe(NamedTuple):
    """Stages of a pipeline, each in a shell of its own."""

    stages: "tuple[Node, ...]"


class Group(NamedTuple):
    """Commands in order, each with the operator before it: `;`, `&&`, `||`, `&`, or `?` for a branch.

    `apart`: in a shell of its own, so that a `cd` in it has no effect outside.
    """

    steps: "tuple[tuple[str, Node], ...]"
    redirects: tuple[Redirect, ...] = ()
    apart: bool = False


class Loop(NamedTuple):
    """`for name in words`: the body, with every word as a possible value."""

    name: str
    words: tuple[Word, ...]
    body: Group


class Function(NamedTuple):
    """The definition of a function; its body is judged where it stands."""

    name: str
    body: Group


BLANK = re.compile(r"(?:[ \t]|\\\n)+")
BARE = re.compile(r"[^\s|&;<>()\\'\"$`#{}=~]+|[#{}=~]")
END = re.compile(r"[\s|&;<>()]|\Z")
NAME = re.compile(r"[A-Za-z_]\w*")
ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=")
PARAMETER = re.compile(r"[A-Za-z_]\w*|[0-9]+|[@*#?$!_-]")
OPERATOR = re.compile(r"(\d*|&)(<<<|<<-?|<>|>>|>\||>&|<&|&>>|&>|>|<)")
FD = re.compile(r"\{\w+\}[<>]")
WORD_END = r"(?=[\s;|&()<>]|\Z)"
KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|time|[{}!]|\[\[)" + WORD_END
)
HARD = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
)
"""Control characters and invisible ones, with which a text is not what it seems."""
ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S)
NAMED = {"n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "r": "\r", "v": "\v"}


def read(text: str) -> Group:
    """Return the tree of a script. Raises Unreadable."""
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the text is longer than {MAX_CHARACTERS} characters")
    reader = _Reader(text, 0)
    group = reader.script()
    if reader.at < len(text) or reader.documents:
        raise Unreadable(f"{text[reader.at : reader.at + 1]!r} stands where no command can")
    return group


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text, self.at, self.depth = text, 0, depth
        self.documents: list[tuple[str, bool, bool, list[Part]]] = []

    # Lists, pipelines, commands

    def script(self, *until: str) -> Group:
        """Read commands up to one of these words in command position, which is not consumed, or to `)` or the end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("the text is nested too deep")
        steps: list[tuple[str, Node]] = []
        before = ";"
        while True:
            self.lines()
            if self.at >= len(self.text) or self.text[self.at] == ")" or self.text.startswith(";;", self.at):
                break
            if until and (match := KEYWORD.match(self.text, self.at)) and match[0] in until:
                break
            steps.append((before, self.pipeline()))
            self.blanks()
            before = next((each for each in ("&&", "||", ";;", ";", "&") if self.text.startswith(each, self.at)), ";")
            if before == ";;":
                before = ";"
            elif self.text.startswith(before, self.at):
                self.at += len(before)
            elif self.at < len(self.text) and self.text[self.at] not in "\n)":
                raise Unreadable(f"{self.text[self.at]!r} stands where a command should end")
            if before == "&":
                steps[-1] = (steps[-1][0], Group((steps[-1],), apart=True))
        self.depth -= 1
        return Group(tuple(steps))

    def blanks(self) -> None:
        if match := BLANK.match(self.text, self.at):
            self.at = match.end()
        if self.text.startswith("#", self.at) and (self.at == 0 or self.text[self.at - 1] in " \t\n;|&()"):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def lines(self) -> None:
        """Skip blanks, comments and line ends, and read the here-documents that begin after one."""
        self.blanks()
        while self.text.startswith("\n", self.at):
            self.at += 1
            self.read_documents()
            self.blanks()

    def pipeline(self) -> Node:
        stages = list[Node]()
        while True:
            self.lines() if stages else self.blanks()
            while (match := KEYWORD.match(self.text, self.at)) and match[0] in ("!", "time"):
                self.at = match.end()
                self.blanks()
                if match[0] == "time" and re.compile(r"-p\s").match(self.text, self.at):
                    self.at += 2
                    self.blanks()
            stages.append(self.command())
            self.blanks()
            if self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
                self.at += 2 if self.text.startswith("|&", self.at) else 1
            else:
                return stages[0] if len(stages) == 1 else Pipe(tuple(stages))

    def command(self) -> Node:
        if self.text.startswith("((", self.at):
            return self.arithmetic_command()
        if self.text.startswith("(", self.at):
            self.at += 1
            group = self.closed(self.script(), ")")
            return Group(group.steps, self.redirects(), apart=True)
        match = KEYWORD.match(self.text, self.at)
        if match is None:
            return self.simple()
        self.at = match.end()
        return self.compound(match[0])

    def compound(self, word: str) -> Node:
        """Read the command that a keyword begins."""
        if word == "{":
            group = self.closed(self.script("}"), "}")
            return Group(group.steps, self.redirects())
        if word in ("if", "while", "until"):
            return self.branches({"if": "then"}.get(word, "do"), {"if": "fi"}.get(word, "done"))
        reads: dict[str, Callable[[], Node]] = {
            "for": self.loop,
            "select": self.loop,
            "case": self.case,
            "[[": self.test,
            "function": self.named_function,
        }
        if word not in reads:
            raise Unreadable(f"{word!r} stands where a command should begin")
        return reads[word]()

    def named_function(self) -> Function:
        self.blanks()
        name = self.plain()
        self.blanks()
        if self.text.startswith("(", self.at):
            self.at += 1
            self.blanks()
            self.expect(")")
        return self.function(name)

    def closed(self, group: Group, closing: str) -> Group:
        self.lines()
        self.expect(closing)
        return group

    def expect(self, word: str) -> None:
        if not self.text.startswith(word, self.at):
            raise Unreadable(f"{word!r} is missing")
        self.at += len(word)

    def branches(self, opening: str, closing: str) -> Group:
        steps: list[tuple[str, Node]] = [(";", self.closed(self.script(opening), opening))]
        while True:
            steps.append(("?", self.script("elif", "else", closing)))
            match = KEYWORD.match(self.text, self.at)
            if match is None:
                raise Unreadable(f"{closing!r} is missing")
            self.at = match.end()
            if match[0] == closing:
                return Group(tuple(steps), self.redirects())
            if match[0] == "elif":
                steps.append(("?", self.closed(self.script("then"), "then")))

    def loop(self) -> Node:
        words = list[Word]()
        self.blanks()
        if self.text.startswith("((", self.at):
            head: Node = self.arithmetic_command()
            name = ""
        else:
            head, name = Group(()), self.plain()
            self.lines()
            if self.text.startswith("in", self.at):
                self.at += 2
                self.blanks()
                while self.at < len(self.text) and self.text[self.at] not in ";\n":
                    words.append(self.word())
                    self.blanks()
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        self.lines()
        self.expect("do")
        body = self.closed(self.script("done"), "done")
        body = Group(((";", head), *body.steps), self.redirects())
        return Loop(name, tuple(words), body)

    def case(self) -> Group:
        steps: list[tuple[str, Node]] = []
        self.blanks()
        steps.append((";", self.only(self.word())))
        self.lines()
        self.expect("in")
        while True:
            self.lines()
            if self.text.startswith("esac", self.at):
                self.at += 4
                return Group(tuple(steps), self.redirects())
            if self.text.startswith("(", self.at):
                self.at += 1
            while True:
                self.blanks()
                steps.append((";", self.only(self.word())))
                self.blanks()
                if not self.text.startswith("|", self.at):
                    break
                self.at += 1
            self.expect(")")
            steps.append(("?", self.script("esac")))
            self.lines()
            for end in (";;&", ";;", ";&"):
                if self.text.startswith(end, self.at):
                    self.at += len(end)
                    break

    def only(self, *words: Word) -> Simple:
        """Return a command that does nothing but expand words."""
        return Simple((), (Word((Part("bare", ":"),), self.at, self.at), *words), (), self.at, self.at)

    def test(self) -> Simple:
        """`[[ ... ]]`, of which only the words count."""
        words, start = list[Word](), self.at
        while True:
            self.lines()
            if re.compile(r"\]\]" + WORD_END).match(self.text, self.at):
                self.at += 2
                break
            if self.at >= len(self.text):
                raise Unreadable("']]' is missing")
            if self.text[self.at] in "()<>|&":
                self.at += 1
                continue
            words.append(self.word(pattern=True))
        redirects = self.redirects()
        return Simple((), (Word((Part("bare", "[["),), start, start), *words), redirects, start, self.at)

    def arithmetic_command(self) -> Simple:
        start = self.at
        self.at += 2
        return self.only(Word(self.arithmetic("))"), start, self.at))

    def function(self, name: str) -> Function:
        self.lines()
        body = self.command()
        return Function(name, body if isinstance(body, Group) else Group(((";", body),)))

    def simple(self) -> Node:
        assigns, words, redirects = list[tuple[str, Word]](), list[Word](), list[Redirect]()
        start = self.at
        while True:
            self.blanks()
            if self.at >= len(self.text) or self.text[self.at] in "\n;|)":
                break
            if self.redirect(redirects):
                continue
            letter = self.text[self.at]
            if letter == "&":
                break
            if letter == "(":
                if len(words) != 1 or assigns or redirects:
                    raise Unreadable("'(' stands within a command")
                return self.short_function(words[0])
            if not self.assignment(assigns, words):
                words.append(self.word())
        if not (assigns or words or redirects):
            raise Unreadable("a command is missing")
        return Simple(tuple(assigns), tuple(words), tuple(redirects), start, self.at)

    def short_function(self, name: Word) -> Function:
        """Read the rest of `name() { ...; }`."""
        self.at += 1
        self.blanks()
        self.expect(")")
        return self.function(self.text[name.start : name.end])

    def assignment(self, assigns: list[tuple[str, Word]], words: list[Word]) -> bool:
        """Read `name=value` before a command, or as an argument of `export` and its like."""
        declares = bool(words) and self.text[words[0].start : words[0].end] in DECLARING
        match = ASSIGNS.match(self.text, self.at) if not words or declares else None
        if match is None:
            return False
        self.at = match.end()
        assigns.append((match[1], self.value()))
        if declares:
            words.append(Word((Part("quoted", match[1]),), match.start(), match.end()))
        elif match[2] and re.search(r"[$`(]", match[2]):
            raise Unreadable("the index of an array is computed")
        return True

    def value(self) -> Word:
        start = self.at
        if not self.text.startswith("(", self.at):
            return self.word(empty=True)
        self.at += 1
        parts = list[Part]()
        while True:
            self.lines()
            if self.text.startswith(")", self.at):
                self.at += 1
                return Word((*parts, Part("unknown")), start, self.at)
            if self.at >= len(self.text):
                raise Unreadable("')' is missing")
            parts.extend(self.word().parts)

    def redirects(self) -> tuple[Redirect, ...]:
        found = list[Redirect]()
        self.blanks()
        while self.redirect(found):
            self.blanks()
        return tuple(found)

    def redirect(self, found: list[Redirect]) -> bool:
        match = OPERATOR.match(self.text, self.at)
        if match is None:
            if FD.match(self.text, self.at):
                raise Unreadable("a redirection names its descriptor")
            return False
        if self.text.startswith(("<(", ">("), match.start(2)) and len(match[2]) == 1 and not match[1]:
            return False  # a process substitution, which is a word
        operator, self.at = match[2], match.end()
        self.blanks()
        if operator in ("<<", "<<-"):
            word = self.word()
            text = self.text[word.start : word.end]
            quoted, parts = re.search(r"['\"\\]", text), list[Part]()
            self.documents.append((re.sub(r"['\"\\]", "", text), not quoted, operator == "<<-", parts))
            found.append(Redirect("<<", Word(parts, self.at, self.at)))
        else:
            word = self.word()
            found.append(Redirect("<<" if operator == "<<<" else operator, word))
        return True

    def read_documents(self) -> None:
        for end, expands, tabs, parts in self.documents:
            lines = list[str]()
            while True:
                if self.at >= len(self.text):
                    raise Unreadable("a here-document does not end")
                stop = self.text.find("\n", self.at)
                line = self.text[self.at : stop if stop >= 0 else len(self.text)]
                self.at = stop + 1 if stop >= 0 else len(self.text)
                line = line.lstrip("\t") if tabs else line
                if line == end:
                    break
                lines.append(line)
            text = "".join(line + "\n" for line in lines)
            parts.extend(_Reader(text, self.depth).double(whole=True) if expands else [Part("quoted", text)])
        self.documents.clear()

    # Words

    def plain(self) -> str:
        word = self.word()
        if any(part.kind != "bare" for part in word.parts):
            raise Unreadable("a name is computed")
        return "".join(part.text for part in word.parts)

    def word(self, *, empty: bool = False, pattern: bool = False) -> Word:
        start, parts = self.at, list[Part]()
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in " \t\n|&;)" and not (pattern and letter in "|)" and parts):
                break
            if letter in "<>":
                if self.text.startswith(("<(", ">("), self.at):
                    self.at += 2
                    parts.append(Part("script", "<", quoted=True, script=self.closed(self.script(), ")")))
                    continue
                break
            if letter == "(":
                if parts and parts[-1].kind == "bare" and parts[-1].text[-1:] in "?*+@!":  # extglob
                    self.at += 1
                    continue
                if pattern and parts:
                    self.at += 1
                    continue
                break
            if pattern and letter in "|)":
                self.at += 1
                continue
            parts.extend(self.part(letter))
        if not parts and not empty:
            raise Unreadable("a word is missing")
        return Word(tuple(parts), start, self.at)

    def part(self, letter: str) -> "tuple[Part, ...] | list[Part]":
        reads: dict[str, Callable[[], tuple[Part, ...]]] = {
            "\\": self.escaped,
            "'": self.single,
            '"': self.quotation,
            "$": self.unquoted_dollar,
            "`": lambda: self.backticks(quoted=False),
        }
        if letter in reads:
            return reads[letter]()
        match = BARE.match(self.text, self.at)
        if match is None:
            raise Unreadable(f"{letter!r} stands within a word")
        self.at = match.end()
        return (Part("bare", match[0]),)

    def escaped(self) -> tuple[Part, ...]:
        self.at += 2
        following = self.text[self.at - 1 : self.at]
        if not following:
            raise Unreadable("the text ends with a backslash")
        return () if following == "\n" else (Part("quoted", following),)

    def single(self) -> tuple[Part, ...]:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a quote does not end")
        text, self.at = self.text[self.at + 1 : end], end + 1
        return (Part("quoted", text),)

    def quotation(self) -> tuple[Part, ...]:
        self.at += 1
        return (*self.double(), Part("quoted"))

    def unquoted_dollar(self) -> tuple[Part, ...]:
        if self.text.startswith('$"', self.at):
            self.at += 1
            return self.quotation()
        if self.text.startswith("$'", self.at):
            return self.ansi()
        return self.dollar(quoted=False)

    def ansi(self) -> tuple[Part, ...]:
        match = re.compile(r"\$'([^'\\]*+(?:\\.[^'\\]*+)*)'", re.S).match(self.text, self.at)
        if match is None:
            raise Unreadable("a quote does not end")
        self.at = match.end()
        return (Part("quoted", ANSI.sub(_escaped, match[1])),)

    def double(self, *, whole: bool = False) -> list[Part]:
        """Read up to the closing double quote, or the whole text of a here-document."""
        parts = list[Part]()
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == '"' and not whole:
                self.at += 1
                return parts
            if letter == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                if following != "\n":
                    parts.append(Part("quoted", following if following in '$`"\\' else "\\" + following))
            elif letter == "$":
                parts.extend(self.dollar(quoted=True))
            elif letter == "`":
                parts.extend(self.backticks(quoted=True))
            else:
                match = re.compile(r'[^\\$`"]+|"').match(self.text, self.at)
                assert match is not None
                self.at = match.end()
                parts.append(Part("quoted", match[0]))
        if not whole:
            raise Unreadable("a quote does not end")
        return parts

    def dollar(self, *, quoted: bool) -> tuple[Part, ...]:
        self.at += 1
        if self.text.startswith("((", self.at):
            self.at += 2
            return self.arithmetic("))")
        if self.text.startswith("(", self.at):
            self.at += 1
            return (Part("script", quoted=quoted, script=self.closed(self.script(), ")")),)
        if self.text.startswith("{", self.at):
            return self.braced(quoted)
        if self.text.startswith("[", self.at):
            raise Unreadable("`$[` is an old form of arithmetic")
        if match := PARAMETER.match(self.text, self.at):
            name = match[0] if not match[0].isdigit() else match[0][0]
            self.at += len(name)
            return (Part("variable", name, quoted),)
        return (Part("quoted", "$"),)

    def braced(self, quoted: bool) -> tuple[Part, ...]:
        self.at += 1
        indirect = self.text.startswith("!", self.at)
        counts = self.text.startswith("#", self.at) and not self.text.startswith("#}", self.at)
        self.at += indirect or counts
        match = PARAMETER.match(self.text, self.at)
        if match is None:
            raise Unreadable("a parameter has no name")
        name, self.at = match[0], match.end()
        if self.text.startswith("}", self.at) and not indirect:
            self.at += 1
            return (Part("number") if counts else Part("variable", name, quoted),)
        operator = re.compile(r":?[-=+?]|##?|%%?|//?|\^\^?|,,?|:|@|\[[@*]\]|\[", re.S).match(self.text, self.at)
        self.at = operator.end() if operator else self.at
        inner = self.until_brace()
        if re.search(r"^@?P$", "".join(part.text for part in inner)) and operator and operator[0] == "@":
            raise Unreadable("a value is expanded again")
        if counts:
            return (*hidden(inner), Part("number"))
        if operator and operator[0] in (":-", "-", ":=", "=") and not indirect:
            return (Part("variable", name, quoted, default=tuple(inner) or (Part("quoted"),)),)
        is_plain = not indirect and all(part.kind == "quoted" for part in inner)
        if operator and operator[0] in ("%", "%%", "#", "##") and is_plain:
            return (Part("variable", name, quoted, trim=(operator[0], "".join(part.text for part in inner))),)
        return (*hidden(inner), Part("unknown", quoted=quoted))

    def until_brace(self) -> list[Part]:
        parts = list[Part]()
        while not self.text.startswith("}", self.at):
            if self.at >= len(self.text):
                raise Unreadable("'}' is missing")
            letter = self.text[self.at]
            if letter in "\\'\"$`":
                parts.extend(self.part(letter))
            else:
                parts.append(Part("quoted", letter))
                self.at += 1
        self.at += 1
        return parts

    def arithmetic(self, closing: str) -> tuple[Part, ...]:
        """Read a calculation: its result is a number, but the substitutions in it run."""
        depth, parts, start = 0, list[Part](), self.at
        while self.at < len(self.text):
            letter = self.text[self.at]
            if depth == 0 and self.text.startswith(closing, self.at):
                if "[" in self.text[start : self.at]:
                    raise Unreadable("a calculation has an index")
                self.at += len(closing)
                return (*hidden(parts), Part("number"))
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "$":
                parts.extend(self.dollar(quoted=True))
            elif letter == "`":
                parts.extend(self.backticks(quoted=True))
            else:
                self.at += 1
        raise Unreadable("a calculation does not end")

    def backticks(self, *, quoted: bool) -> tuple[Part, ...]:
        match = re.compile(r"`([^`\\]*+(?:\\.[^`\\]*+)*)`", re.S).match(self.text, self.at)
        if match is None:
            raise Unreadable("backticks do not end")
        self.at = match.end()
        inner = re.sub(r'\\([`\\$"])' if quoted else r"\\([`\\$])", r"\1", match[1])
        reader = _Reader(inner, self.depth)
        script = reader.script()
        if reader.at < len(inner):
            raise Unreadable("backticks hold no script")
        return (Part("script", quoted=quoted, script=script),)


DECLARING = ("export", "declare", "typeset", "local", "readonly")


def hidden(parts: list[Part]) -> list[Part]:
    """Return the scripts in parts whose text does not matter, but which run."""
    return [Part("run", script=part.script) for part in parts if part.script is not None]


def _escaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits or match[4]:
        code = int(digits, 16) if digits else int(match[4], 8) & 0xFF
        return chr(code) if 0 < code < 0x110000 else "\0"
    if match[5]:
        return chr(ord(match[5].upper()) & 0x1F)
    return NAMED.get(match[6], match[6])
