"""A second parser of shell text, character by character, which the syntax tree has to agree with.

The parser of the tree approximates bash's grammar. This scanner knows less, but exactly: which characters are comments,
quoted text, here-documents, and ends of commands for bash. Where the two differ, a command may hide in the difference.
"""

import re
from typing import TYPE_CHECKING

from constitution.tables import pattern

if TYPE_CHECKING:
    from tree_sitter import Node

Span = tuple[int, int]

BEFORE_WORD = frozenset(" \t\n;|&()<>")
BLANKS = frozenset(" \t")
WORD_END = pattern(r"[\s;|&()<>]")
NAME = pattern(r"[A-Za-z_]+")
SINGLE = pattern(r"'[^']*'")
ANSI = pattern(r"\$'(?:[^'\\]|\\.)*'", re.S)
END_WORD = pattern(r"(?:'([\w.-]+)'|\"([\w.-]+)\"|\\([\w.-]+)|([^\s;|&()<>'\"\\$`]++))(?=[\s;|&()<>]|\Z)")
MAX_NESTING = 60


class Unclear(Exception):
    """The text is ambiguous, or incomplete."""


class Scan:
    """The parts of a text, as offsets. `unclear`: why the rest could not be scanned."""

    def __init__(self) -> None:
        self.comments: list[Span] = []
        self.quoted: list[Span] = []  # '...' and $'...', with their quotes
        self.documents: list[Span] = []  # bodies of here-documents, without the end word
        self.joined: list[int] = []  # line continuations
        self.newlines: list[tuple[int, int]] = []  # ends of lines of code, with the bracket they are in
        self.unclear = ""


def scan(text: str) -> Scan:
    """Scan a script. Total: `unclear` is set if it cannot be scanned."""
    scanner = _Scanner(text)
    try:
        end = scanner.code(0, "", -1, 0)
        if end != len(text):
            raise Unclear("a closing bracket without an opening one")
    except Unclear as reason:
        scanner.found.unclear = str(reason)
    return scanner.found


class _Scanner:
    """Reads a text from left to right; each method starts after an opening character and returns the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Scan()
        self.documents: list[tuple[str, bool, bool]] = []  # end word, quoted, tabs stripped: of this line

    def code(self, at: int, closing: str, opened: int, depth: int) -> int:
        """Read commands up to a closing `)` or backtick, or to the end of the text."""
        if depth > MAX_NESTING:
            raise Unclear("brackets are nested too deep")
        cases = 0  # within `case ... esac` a `)` may end a pattern
        while at < len(self.text):
            letter = self.text[at]
            if letter == closing and not (letter == ")" and cases):
                return at + 1
            if letter == ")" and not cases:
                return at
            if letter.isalpha() or letter == "_":
                end = self.word(at)
                cases += {"case": 1, "esac": -1}.get(self.text[at:end], 0) if self._is_word(at, end) else 0
                at = end
            elif letter in "#\n(<":
                at = self.punctuation(at, closing, opened, depth)
            else:
                at = at + 1 if letter == ")" else self.character(at, depth)
        if closing:
            raise Unclear("the text ends within brackets")
        return at

    def word(self, at: int) -> int:
        """Return the end of the letters that begin here."""
        letters = NAME.match(self.text, at)
        return letters.end() if letters else at + 1

    def _begins_word(self, at: int) -> bool:
        return at == 0 or self.text[at - 1] in BEFORE_WORD

    def _is_word(self, at: int, end: int) -> bool:
        return self._begins_word(at) and (end == len(self.text) or WORD_END.match(self.text, end) is not None)

    def punctuation(self, at: int, closing: str, opened: int, depth: int) -> int:
        """Read what begins with `#`, a newline, `(` or `<` in code."""
        text, letter = self.text, self.text[at]
        if letter == "#" and (self._begins_word(at) or at == opened + 1):
            return self.comment(at, closing)
        if letter == "\n":
            self.found.newlines.append((at, opened))
            return self.here_documents(at + 1, depth)
        if letter == "(":
            arithmetic = text[at + 1 : at + 2] == "(" and self._begins_word(at)
            return self.arithmetic(at + 2, depth) if arithmetic else self.code(at + 1, ")", at, depth + 1)
        if text.startswith("<<<", at):
            return at + 3
        return self.end_word(at + 2) if text.startswith("<<", at) else at + 1

    def comment(self, at: int, closing: str) -> int:
        """Read a comment, which ends with its line."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        if closing == "`" and "`" in self.text[at:end]:
            raise Unclear("a comment within backticks")
        self.found.comments.append((at, end))
        return end

    def character(self, at: int, depth: int, *, quoted: bool = False) -> int:
        """Read one character that may begin a quotation or an expansion."""
        text = self.text
        letter, two = text[at], text[at : at + 2]
        if letter == "\\":
            if two == "\\\n":
                self.found.joined.append(at)
            return at + 2
        if (letter == "'" or two == "$'") and not quoted:
            return self.single(at, SINGLE if letter == "'" else ANSI)
        if letter == '"':
            return self.until('"', at + 1, depth + 1, "the text ends within quotes")
        if letter == "`":
            return self.backticks(at, depth)
        return self.expansion(at, depth, quoted=quoted) if letter == "$" else at + 1

    def expansion(self, at: int, depth: int, *, quoted: bool) -> int:
        """Read what begins with a `$`."""
        text, two = self.text, self.text[at : at + 2]
        if text[at : at + 3] == "$((":
            return self.arithmetic(at + 3, depth)
        if two == "$[":  # arithmetic, in which quotes are removed before expansion
            return self.until("]", at + 2, depth + 1, "the text ends within arithmetic", opening="[")
        if two == "$(":
            return self.code(at + 2, ")", at + 1, depth + 1)
        within = "the text ends within an expansion"
        return self.until("}", at + 2, depth + 1, within, quoted=quoted) if two == "${" else at + 1

    def single(self, start: int, quotation: re.Pattern[str]) -> int:
        """Read `'...'` or `$'...'`."""
        match = quotation.match(self.text, start)
        if match is None:
            raise Unclear("the text ends within quotes")
        self.found.quoted.append(match.span())
        return match.end()

    def until(self, closing: str, at: int, depth: int, why: str, *, opening: str = "", quoted: bool = True) -> int:
        """Read up to a closing character, of `"..."` or `${...}`; with an `opening` one, of arithmetic.

        `why` it is unclear if there is none. In a quoted `${...}` it depends on the operator whether `'` is a quote.
        """
        if depth > MAX_NESTING and not opening:
            raise Unclear("brackets are nested too deep")
        unusual = "'\"" if opening else "'" if quoted and closing == "}" else ""
        open_brackets = 0
        while at < len(self.text):
            letter = self.text[at]
            if letter in unusual:
                raise Unclear("quotes within arithmetic" if opening else "quotes within an expansion")
            if letter == closing and not open_brackets:
                return at + 1
            open_brackets += (letter == opening) - (letter == closing)
            at = self.character(at, depth, quoted=quoted)
        if why:
            raise Unclear(why)
        return at

    def backticks(self, start: int, depth: int) -> int:
        end = self.text.find("`", start + 1)
        if end < 0 or "\\" in self.text[start:end]:
            raise Unclear("backticks within backticks")
        return self.code(start + 1, "`", start, depth + 1)

    def arithmetic(self, at: int, depth: int) -> int:
        """Read `((...))`, or nested brackets if it does not end so."""
        end = self.until(")", at, depth, "", opening="(")
        if self.text[end : end + 1] == ")":
            return end + 1
        return self.code(self.code(at, ")", at - 1, depth + 1), ")", at - 2, depth + 1)

    def end_word(self, at: int) -> int:
        """Read the end word of a here-document, without its quotes."""
        text = self.text
        strips = text[at : at + 1] == "-"
        at += strips
        while text[at : at + 1] in BLANKS and at < len(text):
            at += 1
        match = END_WORD.match(text, at)
        if match is None:
            raise Unclear("a here-document with an unusual end word")
        quoted = match[1] or match[2] or match[3] or ""
        self.documents.append((quoted or match[4], bool(quoted), strips))
        return match.end()

    def here_documents(self, at: int, depth: int) -> int:
        """Read the bodies of the here-documents that the last line opened."""
        waiting, self.documents = self.documents, []
        for word, quoted, strips in waiting:
            start = at
            while True:
                if at >= len(self.text):
                    raise Unclear("a here-document without an end")
                end = self.text.find("\n", at)
                end = len(self.text) if end < 0 else end
                line = self.text[at:end]
                if (line.lstrip("\t") if strips else line) == word:
                    break
                if not quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                    end = self.text.find("\n", end + 1)  # the next line belongs to this one
                    end = len(self.text) if end < 0 else end
                at = end + 1
            self.found.documents.append((start, at))
            if not quoted:
                self._expansions(start, at, depth)
            at = min(end + 1, len(self.text))
        return at

    def _expansions(self, at: int, end: int, depth: int) -> None:
        """Read the expansions in the body of a here-document, where quotes are ordinary characters."""
        while at < end:
            at = at + 1 if self.text[at] == '"' else self.character(at, depth, quoted=True)
        if at > end:
            raise Unclear("an expansion beyond its here-document")


def differs(found: Scan, root: "Node", source: bytes) -> str:
    """Return the difference between a tree and the scan of its text, or ""."""
    comments, quoted, ends, pending = set[Span](), set[Span](), list[int](), [root]
    while pending:
        node = pending.pop()
        span = node.start_byte, node.end_byte
        if node.type == "comment":
            comments.add(span)
        elif node.type in ("raw_string", "ansi_c_string"):
            quoted.add(span)
        elif node.type == "heredoc_end":
            ends.append(node.start_byte - len(source[: node.start_byte]) + len(source[: node.start_byte].rstrip(b"\t")))
        elif node.type in ONE_LINE and _spans_lines(node, found, source):
            return "a command goes on behind the end of its line"
        pending.extend(node.children)
    if comments != set(found.comments):
        return "it is not clear what is a comment"
    if quoted != set(found.quoted):
        return "it is not clear what is quoted"
    if sorted(ends) != sorted(end for _, end in found.documents):
        return "it is not clear where a here-document ends"
    return ""


def _spans_lines(node: "Node", found: Scan, source: bytes) -> bool:
    """Return whether a node contains the end of a line of code outside of the node's own brackets."""
    if source[node.start_byte : node.start_byte + 2] == b"[[":
        return False
    return any(node.start_byte < at < node.end_byte and opened < node.start_byte for at, opened in found.newlines)


ONE_LINE = frozenset(["command", "declaration_command", "test_command", "unset_command", "variable_assignment"])
