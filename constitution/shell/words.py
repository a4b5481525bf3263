"""Expansion of tree nodes to words: quotes removed, known variables substituted, braces and fields split.

A word is a `str`; `UNKNOWN` in it stands for a part that cannot be known. Pieces of a word are (text, kind): `bare`
text may have braces, `~` and patterns, `quoted` text is literal, `split` text comes from an unquoted expansion.
"""

import re
from collections.abc import Callable
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, Literal

from constitution.effects import UNKNOWN
from constitution.shell.scope import Scope
from constitution.tables import pattern

if TYPE_CHECKING:
    from tree_sitter import Node


Kind = Literal["bare", "quoted", "split"]
Piece = tuple[str, Kind]

MAX_WORDS = 256
SUBSTITUTIONS = ("command_substitution", "process_substitution")
NAME = pattern(r"[A-Za-z_]\w*|\d")
PATTERNS = frozenset({"%", "%%", "#", "##", "/", "//"})
SPELLED = pattern(r"[$`'\"\\]")
SPECIAL = re.compile(r"[\\~{*?\[$`]")


class Expander:
    """Turns nodes of one source into words, in one scope. `substitute` runs a substitution and returns its text."""

    def __init__(
        self,
        source: bytes,
        scope: Scope,
        substitute: "Callable[[Node], str]",
        substitute_file: "Callable[[Node], str]",
        calculate: Callable[[str], None],
    ) -> None:
        self.source = source
        self.calculate = calculate
        self.substitute_file = substitute_file
        self.scope = scope
        self.substitute = substitute
        self.choice: dict[str, str] = {}
        self.doubtful: set[str] = set()

    def words(self, node: "Node") -> list[str]:
        """Return the words of a node after all expansions: none, one or several."""
        kind = node.type
        if kind == "word":
            text = self.text_of(node)
            if not SPECIAL.search(text):
                return [text]
        elif kind in ("expansion", "simple_expansion", "string") and (spliced := self._spliced(node)) is not None:
            return spliced
        return _fields(self._pieces(node), self.scope)

    def joined(self, nodes: "list[Node]") -> list[str]:
        """Return the words of adjacent nodes without a blank between them."""
        if len(nodes) == 1:
            return self.words(nodes[0])
        parts = [part for node in nodes for part in (node.children if node.type == "concatenation" else [node])]
        return _fields(self._sequence(parts), self.scope)

    def _sequence(self, nodes: "list[Node]") -> list[Piece]:
        """Read the nodes of one word; `$` and a name that the tree has apart are joined."""
        pieces, index = list[Piece](), 0
        while index < len(nodes):
            node, after = nodes[index], nodes[index + 1] if index + 1 < len(nodes) else None
            index += 1
            if node.type == "simple_expansion" and after is not None and self.text_of(after).startswith("{"):
                pieces.append((UNKNOWN, "split"))  # `$x{a,b}` is `$xa $xb`
            elif node.type != "$" or self.text_of(node) != "$" or after is None or after.start_byte != node.end_byte:
                pieces.extend(self._pieces(node))
            elif name := NAME.match(self.text_of(after)) if after.type in ("word", "number") else None:
                pieces.append((self._value(name[0]), "split"))
                pieces.extend(unescape_bare(self.text_of(after)[name.end() :]))
                index += 1
            elif after.type != "string":  # `$"text"` is `"text"`
                pieces.extend(self._pieces(node))
        return pieces

    def text(self, node: "Node") -> str:
        """Return the text of a node without splitting, as in assignments and here-strings."""
        return "".join(text for text, _ in _tilde(self._pieces(node), self.scope))

    def text_of(self, node: "Node") -> str:
        """Return the source text of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def several(self) -> list[dict[str, str]]:
        """Return the combinations of values for the variables met so far, at most 16."""
        names = sorted(self.doubtful)
        return [
            dict(zip(names, values, strict=True))
            for values in islice(product(*(self.scope.values(name) for name in names)), 16)
        ]

    def _pieces(self, node: "Node") -> list[Piece]:
        reader = READERS.get(node.type)
        return reader(self, node) if reader else self._opaque(node)

    def _word(self, node: "Node") -> list[Piece]:
        return unescape_bare(re.sub(r"\?+\*", "*", self.text_of(node)))  # `?*`: a name found by a search

    def _raw(self, node: "Node") -> list[Piece]:
        return [(self.text_of(node)[1:-1], "quoted")]

    def _ansi(self, node: "Node") -> list[Piece]:
        return [(unescape_ansi(self.text_of(node)[2:-1]), "quoted")]

    def _string(self, node: "Node") -> list[Piece]:
        """Read a double-quoted string; some of its blanks are missing in the tree, so gaps are read from the source."""
        start, parts = node.start_byte + 1, list[str]()
        for child in node.named_children:
            parts.append(unescape_double(self.source[start : child.start_byte].decode("utf-8", "replace")))
            if child.type == "string_content":
                parts.append(unescape_double(self.text_of(child)))
            else:
                parts.extend(text for text, _ in self._pieces(child))
            start = child.end_byte
        parts.append(unescape_double(self.source[start : node.end_byte - 1].decode("utf-8", "replace")))
        return [("".join(parts), "quoted")]

    def _concatenation(self, node: "Node") -> list[Piece]:
        return self._sequence(node.children)

    def _variable(self, node: "Node") -> list[Piece]:
        name = node.named_children[0] if node.named_children else None
        if name is None or node.child_count != (3 if node.type == "expansion" else 2):
            return self._opaque(node)
        if name.type == "variable_name":
            return [(self._value(self.text_of(name)), "split")]
        return self._opaque(node)

    def _parameter(self, node: "Node") -> list[Piece]:
        """`${name}`, and `${name` with an operator behind it."""
        parts = node.children[1:-1]
        if len(parts) < 2 or parts[0].type != "variable_name" or parts[1].is_named:
            return self._variable(node)
        name, operator = self.text_of(parts[0]), parts[1].type
        if operator == ":":
            self.calculate(self.text_of(node))
        words = self._arguments(node, parts, operator)
        word, second = (*words, "", "")[:2]
        value = self._value(name)
        if value == UNKNOWN and operator in DEFAULTS and words and UNKNOWN not in word:
            self.scope.variables.setdefault(self.text_of(node), (UNKNOWN, word))  # it may be unset
            return [(self._value(self.text_of(node)), "split")]
        if operator == ":=" and not value:
            self.scope.assign(name, (word,))
        changed = applied(operator, value, word, second) if UNKNOWN not in value + word + second else None
        return [(UNKNOWN if changed is None else changed, "split")]

    def _arguments(self, node: "Node", parts: "list[Node]", operator: str) -> list[str]:
        """Return the operand of an operator; plain patterns from the source, as the tree drops their blanks."""
        raw = self.source[parts[1].end_byte : node.end_byte - 1].decode("utf-8", "replace")
        if operator in PATTERNS and not SPELLED.search(raw):
            return raw.split("/", 1) if "/" in operator else [raw]
        return [self._argument(part) for part in parts[2:] if part.is_named]

    def _argument(self, node: "Node") -> str:
        return self.text_of(node) if node.type == "regex" else "".join(text for text, _ in self._pieces(node))

    def _value(self, name: str) -> str:
        if name in self.choice:
            return self.choice[name]
        values = self.scope.values(name)
        if len(values) > 1:
            self.doubtful.add(name)
        return values[0]

    def _spliced(self, node: "Node") -> list[str] | None:
        """Return the words of `"${name[@]}"`, `"$@"` and their unquoted forms, or None for anything else."""
        text = self.text_of(node).strip('"')
        if text in ("$@", "$*", "${@}", "${*}"):
            return list(self.scope.positional) if self.scope.positional is not None else None
        match = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", text)
        return list(self.scope.arrays[match[1]]) if match and match[1] in self.scope.arrays else None

    def _opaque(self, node: "Node") -> list[Piece]:
        """Return `UNKNOWN` for a node that is not modelled, but run the substitutions in it."""
        self.run_substitutions(node)
        if node.type in ("arithmetic_expansion", "expansion"):
            self.calculate(self.text_of(node))
        text = self.text_of(node)
        misread = text == "$" and self.source[node.end_byte : node.end_byte + 1].isalnum()
        return [(UNKNOWN, "split")] if node.is_named or misread else unescape_bare(text)

    def run_substitutions(self, node: "Node") -> None:
        """Run every command and process substitution below a node."""
        pending = [node]
        while pending:
            child = pending.pop()
            if child.type in SUBSTITUTIONS:
                self.substitute(child)
            else:
                pending.extend(child.named_children)


READERS: dict[str, "Callable[[Expander, Node], list[Piece]]"] = {
    "word": Expander._word,
    "number": Expander._word,
    "variable_name": Expander._word,
    "extglob_pattern": Expander._word,
    "command_name": Expander._concatenation,
    "concatenation": Expander._concatenation,
    "string": Expander._string,
    "raw_string": Expander._raw,
    "ansi_c_string": Expander._ansi,
    "translated_string": lambda self, node: [piece for child in node.named_children for piece in self._pieces(child)],
    "simple_expansion": Expander._variable,
    "expansion": Expander._parameter,
    "command_substitution": lambda self, node: [(self.substitute(node), "split")],
    "process_substitution": lambda self, node: [(self.substitute_file(node), "quoted")],
    "brace_expression": lambda self, node: [(self.text_of(node), "bare")],
}


MARKS = {"bare": "{}", "quoted": "{}", "split": "\ue006{}\ue007"}
"""Marks around the pieces of a word while braces are expanded."""


def _fields(pieces: list[Piece], scope: Scope) -> list[str]:
    """Split pieces into words: braces first, then unquoted expansions at blanks and the characters of IFS."""
    separators = "".join(scope.variables.get("IFS", ()))
    if any(kind == "bare" and "{" in text for text, kind in pieces):
        return [word for variant in _braces(pieces) for word in _split(_tilde(variant, scope), separators)]
    return _split(_tilde(pieces, scope), separators)


def _split(pieces: list[Piece], separators: str) -> list[str]:
    words, current, started = list[str](), "", False
    for text, kind in pieces:
        if kind == "split" and separators:
            text = text.translate(dict.fromkeys(map(ord, separators.replace(UNKNOWN, "")), " "))
        if kind != "split" or not re.search(r"\s", text):
            current, started = current + text, started or kind != "split" or text != ""
            continue
        first, *others = re.split(r"\s+", text)
        current += first
        for part in others:
            if current or started:
                words.append(current)
            current, started = part, False
    if current or started:
        words.append(current)
    return words[:MAX_WORDS]


def _tilde(pieces: list[Piece], scope: Scope) -> list[Piece]:
    """Replace an unquoted leading `~`, `~/`, `~+` or `~name`."""
    if not pieces or pieces[0][1] != "bare" or not pieces[0][0].startswith("~"):
        return pieces
    user, slash, rest = pieces[0][0][1:].partition("/")
    if not slash and len(pieces) > 1:
        return pieces
    folders = {"": scope.home, "+": scope.cwd[0], "root": "/root"}
    folder = folders.get(user, UNKNOWN if user == "-" else "/home/" + user)
    return [(folder + slash + rest, "bare"), *pieces[1:]]


def _braces(pieces: list[Piece]) -> list[list[Piece]]:
    """Expand `{a,b}` and `{1..3}` over pieces; beyond a few levels or words the result is unknown."""
    marked = "".join(MARKS[kind].format(text.translate(HIDDEN) if kind != "bare" else text) for text, kind in pieces)
    words = [marked]
    for _ in range(8 if marked.count("{") < 32 else 0):
        grown = [variant for word in words for variant in _one_brace(word)]
        if grown == words:
            parts = (enumerate(re.split("[\ue006\ue007]", word)) for word in words)
            return [
                [(part.translate(SHOWN), "split" if index % 2 else "bare") for index, part in word if part]
                for word in parts
            ]
        words = grown[: MAX_WORDS + 1]
        if len(words) > MAX_WORDS:
            break
    return [[(UNKNOWN, "split")]]


def _one_brace(word: str) -> list[str]:
    for opened in (match.start() for match in re.finditer(r"\{", word)):
        commas, closed = _span_of_brace(word, opened)
        if closed < 0 or (opened and word[opened - 1] == "$"):
            continue
        before, inner, after = word[:opened], word[opened + 1 : closed], word[closed + 1 :]
        if commas:
            cuts = [opened, *commas, closed]
            middles = [word[one + 1 : other] for one, other in pairwise(cuts)]
        else:
            middles = _range(inner)
        if not middles:
            continue
        return [before + middle + after for middle in middles]
    return [word]


def _span_of_brace(word: str, opened: int) -> tuple[list[int], int]:
    """Return the positions of the commas of a brace expression, and its end, or -1."""
    depth, commas = 0, list[int]()
    for index in range(opened, len(word)):
        depth += {"{": 1, "}": -1}.get(word[index], 0)
        if depth == 0:
            return commas, index
        if word[index] == "," and depth == 1:
            commas.append(index)
    return [], -1


def _range(inner: str) -> list[str]:
    match = re.fullmatch(r"(-?\d{1,4})\.\.(-?\d{1,4})|(\w)\.\.(\w)", inner)
    if match is None:
        return []
    if match[3]:
        low, high = sorted((ord(match[3]), ord(match[4])))
        return [chr(number) for number in range(low, high + 1)]
    low, high = sorted((int(match[1]), int(match[2])))
    return [str(number) for number in range(low, min(high, low + MAX_WORDS) + 1)]


HIDDEN = str.maketrans("{},.$", "\ue001\ue002\ue003\ue004\ue005")
SHOWN = str.maketrans("\ue001\ue002\ue003\ue004\ue005", "{},.$")
"""Characters that would be part of brace expressions, and those that stand for them within quoted text."""

NAMED = {"n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "r": "\r", "v": "\v"}
ANSI = pattern(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S)


def unescape_bare(text: str) -> list[tuple[str, Literal["bare", "quoted", "split"]]]:
    """Return the pieces of an unquoted word: a character after a backslash is quoted, a continued line is joined."""
    if "\\" not in text:
        return [(text, "bare")]
    pieces = re.findall(r"\\(.)|([^\\]+)|(\\)", text, re.S)
    return [(quoted, "quoted") if quoted else (bare or last, "bare") for quoted, bare, last in pieces if quoted != "\n"]


def unescape_double(text: str) -> str:
    r"""Return the content of a double-quoted string: `\$`, `` \` ``, `\"`, `\\` and a continued line are special."""
    return re.sub(r'\\([$`"\\])|\\\n', lambda match: match[1] or "", text) if "\\" in text else text


def unescape_ansi(text: str) -> str:
    """Return the content of a `$'...'` string."""
    return ANSI.sub(_ansi, text)


def _ansi(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal or match[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8) & 0xFF
        return chr(code) if 0 < code < 0x110000 else UNKNOWN
    if match[5]:
        return chr(ord(match[5].upper()) & 0x1F) or UNKNOWN
    return NAMED.get(match[6], match[6])


DEFAULTS = frozenset([":-", "-", ":=", "=", ":?", "?"])
"""`${name:-word}`: the word replaces an unset variable. (`:?` and `?` end the script instead.)"""

LONGEST = 128
"""The longest value or pattern that is evaluated, in characters; a longer one is unknown."""

Operation = Callable[[str, str, str], str]


def applied(operator: str, value: str, word: str, second: str) -> str | None:
    """Return the result of an operator on a value, or None for an operator that is not modelled."""
    operation = OPERATIONS.get(operator)
    if len(value) > LONGEST and operator not in DEFAULTS:
        return None
    try:
        return operation(value, word, second) if operation else None
    except (ValueError, re.error):
        return None


def _cut(value: str, word: str, *, end: bool, longest: bool) -> str:
    pattern, places = _pattern(word), range(len(value) + 1)
    for at in places if end is longest else reversed(places):
        if pattern.fullmatch(value[at:] if end else value[:at]):
            return value[:at] if end else value[at:]
    return value


def _slice(value: str, start: str, length: str) -> str:
    value = value[int(start) :] if start.strip() else value
    return value[: int(length)] if length else value


def _replaced(value: str, word: str, second: str, *, count: int) -> str:
    return _pattern(word).sub(lambda _: second, value, count=count) if word else value


def _pattern(word: str) -> re.Pattern[str]:
    """Return a shell pattern as a regular expression; brackets are copied."""
    if len(word) > LONGEST or word.count("*") > 1:
        raise ValueError("too long: matching would take its time")
    parts = re.split(r"(\*+|\?)", word)
    return re.compile("".join({"*": ".*", "?": "."}.get(part[:1], re.escape(part)) for part in parts), re.S)


OPERATIONS: dict[str, Operation] = {
    "%": lambda value, word, _: _cut(value, word, end=True, longest=False),
    "%%": lambda value, word, _: _cut(value, word, end=True, longest=True),
    "#": lambda value, word, _: _cut(value, word, end=False, longest=False),
    "##": lambda value, word, _: _cut(value, word, end=False, longest=True),
    "/": lambda value, word, second: _replaced(value, word, second, count=1),
    "//": lambda value, word, second: _replaced(value, word, second, count=0),
    ":": _slice,
    "^": lambda value, *_: value[:1].upper() + value[1:],
    "^^": lambda value, *_: value.upper(),
    ",": lambda value, *_: value[:1].lower() + value[1:],
    ",,": lambda value, *_: value.lower(),
    **dict.fromkeys(DEFAULTS, lambda value, word, _: value),
    **dict.fromkeys((":-", ":="), lambda value, word, _: value or word),
    ":+": lambda value, word, _: word,
    "+": lambda value, word, _: word,
}
