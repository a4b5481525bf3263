"""The state of a shell, and the expansion of words: braces, `~`, variables, and splitting at blanks."""

import re
from collections.abc import Callable
from itertools import product

from constitution.places import FETCHED, UNKNOWN
from constitution.reader import Part, Word

MOST_VALUES = 16
MOST_LENGTH = 2_000
USUAL = {
    "IFS": " \t\n",
    "PPID": "$PPID",
    "TMPDIR": "/tmp",
    "USER": "me",
    "?": "0",
    "#": "0",
    "$": "12345",
    "!": "12345",
}
"""Values of variables that every shell has."""
BRACE = re.compile(r"\{([^{}\s]*,[^{}\s]*|-?\d{1,4}\.\.-?\d{1,4}|\w\.\.\w)\}")


def known(text: str) -> bool:
    """Return whether no part of a text is unknown."""
    return UNKNOWN not in text and FETCHED not in text


class State:
    """Variables with all their possible values, folders in which the shell may be, functions, and files it wrote."""

    def __init__(self, cwds: tuple[str, ...], home: str) -> None:
        self.cwds, self.left, self.home = cwds, (), home
        self.variables: dict[str, tuple[str, ...]] = {}
        self.functions: set[str] = set()
        self.files: dict[str, str] = {}

    left: tuple[str, ...]
    """Folders in which it is if the `cd` before did not succeed."""

    def copy(self) -> "State":
        """Return a state of its own, for a subshell; files are shared."""
        other = State(self.cwds, self.home)
        other.left, other.files = self.left, self.files
        other.variables, other.functions = dict(self.variables), set(self.functions)
        return other

    def join(self, other: "State") -> None:
        """Let everything be possible that is possible there."""
        self.cwds = bounded(self.cwds + other.cwds)
        for name in self.variables.keys() | other.variables.keys():
            self.set(name, self.values(name) + other.values(name))
        self.functions |= other.functions

    def stay(self) -> None:
        """After `;`: the `cd` before may have failed."""
        self.cwds, self.left = bounded(self.cwds + self.left), ()

    def set(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable."""
        self.variables[name] = bounded(values)

    def values(self, name: str) -> tuple[str, ...]:
        """Return all possible values of a variable."""
        if name in self.variables:
            return self.variables[name]
        if name == "HOME":
            return (self.home,)
        if name == "PWD":
            return self.cwds
        return (USUAL.get(name, UNKNOWN),)


def bounded(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return different values; unknown, if there are too many, or very long ones."""
    values = tuple(dict.fromkeys(values))
    fits = len(values) <= MOST_VALUES and all(len(value) <= MOST_LENGTH for value in values)
    return values if fits else (UNKNOWN,)


def choices(words: list[Word], state: State) -> list[dict[str, str]]:
    """Return the combinations of values for the variables in some words that have several; at most 16."""
    names = {part.text for word in words for part in word.parts if part.kind == "variable"}
    several = {name: values for name in sorted(names) if len(values := state.values(name)) > 1}
    found = [dict(zip(several, values, strict=True)) for values in product(*several.values())]
    return found if len(found) <= MOST_VALUES else [dict.fromkeys(several, UNKNOWN)]


def text_of(word: Word, state: State, choice: dict[str, str], run: Callable[[Part], str]) -> str:
    """Return a word as one text: the value of an assignment, the text of a here-document."""
    pieces = _pieces(word, state, choice, run)
    return "".join(text for text, _ in _tilde(pieces, state))


def fields(word: Word, state: State, choice: dict[str, str], run: Callable[[Part], str]) -> list[str]:
    """Return the words that a word expands to."""
    if len(word.parts) == 1 and word.parts[0].kind in ("bare", "quoted") and word.parts[0].text[:1] != "~":
        return [word.parts[0].text]
    pieces = _pieces(word, state, choice, run)
    bare = "".join(text if kind == "bare" else "\x02" * len(text) for text, kind in pieces)
    if "{" in bare and BRACE.search(bare):
        texts = braces("".join(text for text, _ in pieces))
        return [part for text in texts for part in _split(_tilde([(text, "bare")], state))]
    return _split(_tilde(pieces, state))


def _pieces(word: Word, state: State, choice: dict[str, str], run: Callable[[Part], str]) -> list[tuple[str, str]]:
    pieces = list[tuple[str, str]]()
    for part in word.parts:
        if part.kind in ("bare", "quoted"):
            pieces.append((part.text, part.kind))
        elif part.kind == "variable":
            value = choice.get(part.text) or state.values(part.text)[0]
            if part.default and not known(value):
                value = "".join(text for text, _ in _pieces(Word(part.default, 0, 0), state, choice, run)) or UNKNOWN
            if "IFS" in state.variables and not part.quoted:
                value = UNKNOWN
            pieces.append((trimmed(value, *part.trim), "quoted" if part.quoted else "split"))
        elif part.kind in ("script", "run"):
            output = run(part)
            if part.kind == "script":
                pieces.append((output.rstrip("\n"), "quoted" if part.quoted else "split"))
        else:
            pieces.append(("1" if part.kind == "number" else UNKNOWN, "split"))
    return pieces


def trimmed(value: str, operator: str, pattern: str) -> str:
    """Return `${name%.txt}`, `${name##*/}`, `${name%/*}` and their like; other patterns give what is not known."""
    if not operator or not known(value):
        return value
    plain = pattern.strip("*")
    if pattern == plain and not re.search(r"[?\\[]", plain):
        return value.removesuffix(plain) if operator[0] == "%" else value.removeprefix(plain)
    if (
        (operator, pattern) not in (("##", "*" + plain), ("%", plain + "*"))
        or re.search(r"[*?\\[]", plain)
        or not plain
    ):
        return UNKNOWN
    before, found, after = value.rpartition(plain)
    return after if operator == "##" else before if found else value


def _tilde(pieces: list[tuple[str, str]], state: State) -> list[tuple[str, str]]:
    if not pieces or pieces[0][1] != "bare" or not pieces[0][0].startswith("~"):
        return pieces
    rest = pieces[0][0][1:]
    if not rest and len(pieces) > 1 and pieces[1][1] == "bare":  # the reader reads `~` alone
        name, slash, tail = pieces[1][0].partition("/")
        pieces = [("~" + name + slash + tail, "bare"), *pieces[2:]]
        rest = name + slash + tail
    user, slash, tail = rest.partition("/")
    folder = {"": state.home, "+": state.cwds[0], "-": UNKNOWN, "root": "/root"}.get(user, "/home/" + user)
    return [(folder + slash + tail, "bare"), *pieces[1:]]


def _split(pieces: list[tuple[str, str]]) -> list[str]:
    words, current, started = list[str](), "", False
    for text, kind in pieces:
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
    return words[:256]


def braces(text: str) -> list[str]:
    """Expand `{a,b}` and `{1..3}`, to at most 64 words."""
    words, is_nested = [text], re.search(r"\{[^}]*\{", text) is not None
    for _ in range(8):
        grown = [each for word in words for each in _one_brace(word)]
        if grown == words:
            return list(dict.fromkeys(words)) if is_nested else words
        if len(grown) > 64:
            return [UNKNOWN]
        words = grown
    return [UNKNOWN]


def _one_brace(text: str) -> list[str]:
    match = BRACE.search(text)
    if match is None:
        return [text]
    if "," in match[1]:
        middles = match[1].split(",")[:66]
    else:
        low, high = match[1].split("..")
        numbers = low.lstrip("-").isdigit()
        first, last = sorted((int(low), int(high)) if numbers else (ord(low), ord(high)))
        middles = [str(each) if numbers else chr(each) for each in range(first, min(last, first + 65) + 1)]
    return [text[: match.start()] + middle + text[match.end() :] for middle in middles]
