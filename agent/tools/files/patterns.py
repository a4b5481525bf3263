"""Regular expressions that every engine of ours understands in the same way; for all others an error, never a guess.

Understood: characters, . ^ $ | ( ) (?: ) (?i), sets with ranges, * + ? {m,n} and their lazy forms, and
\\d \\w \\s \\b with their opposites, \\t \\r \\f \\v \\xHH, and a backslash before any sign. What matches lies within
one line.
"""

import re
from collections.abc import Iterator
from typing import Literal

from attrs import frozen

from agent.vocabulary.errors import ToolError

Engine = Literal["rg", "python"]

_TOKEN = re.compile(
    r"""(?P<escape>\\.) | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\]) | (?P<group>\((?:\?[^)]?)?) | 
    (?P<count>\{\d*(?:,\d*)?\}[?+]?) | (?P<repeat>[*+?][?+]?) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLASSES = "dDsSwW"
_PLAIN_ESCAPES = "tfrvbB"
_MOST_REPEATS = 1000
_MOST_CHARACTERS, _MOST_LITERAL = 10_000, 100_000
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # what Unicode calls white space
_WORD = r"\p{L}\p{N}_"  # what Python calls \w
_INVALID = r"\udc80-\udcff"  # how Python reads bytes that are no UTF-8, which rg takes for no characters at all
_MEANING: dict[Engine, dict[str, tuple[str, str]]] = {
    "rg": {"w": (f"[{_WORD}]", _WORD), "W": (f"[^{_WORD}]", f"[^{_WORD}]"), "d": (r"\p{Nd}", r"\p{Nd}")},
    "python": {
        "s": (f"[{_SPACE}]", _SPACE),
        "S": (f"[^{_SPACE}{_INVALID}]", ""),
        "D": (rf"[^\d{_INVALID}]", r"\D"),
        "W": (rf"[^\w{_INVALID}]", r"\W"),
        ".": (f"[^\n{_INVALID}]", "."),
        "[^": ("", f"[^{_INVALID}"),
    },
}
"""Where the engines differ: what a class is written as, outside of a set and in one."""


@frozen
class Pattern:
    """A pattern as an engine takes it."""

    rg: str
    python: str


def make_pattern(text: str, *, literal: bool) -> Pattern:
    """Return a pattern. Raises ToolError, naming the place, for one that the engines would not understand alike."""
    most = _MOST_LITERAL if literal else _MOST_CHARACTERS
    if len(text) > most:
        raise ToolError(f"the pattern has {len(text)} characters; {most} are the most")
    if "\n" in text or "\0" in text:
        raise ToolError("the pattern holds a line break or NUL; what is looked for lies within one line")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error
    if literal:
        return Pattern("".join(_escaped_for_rg(sign) for sign in text), re.escape(text))
    _check_balance(text)
    pattern = Pattern("".join(_translated(text, "rg")), "".join(_translated(text, "python")))
    try:
        re.compile(pattern.python)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"the pattern is no regular expression: {error}; literal=true takes it as it is") from error
    return pattern


def _escaped_for_rg(sign: str) -> str:
    return f"\\{sign}" if sign in r"\.+*?()|[]{}^$#&-~" else sign


def _translated(text: str, engine: Engine) -> Iterator[str]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise _refused(text[position:], position)
        match token.lastgroup:
            case "escape":
                written, length = _escape(text, position, engine, in_set=False)
            case "set":
                written, length = _set(token[0], position, engine), len(token[0])
            case "group":
                written, length = _group(text, token[0], position)
            case _:
                written, length = _sign(token[0], position, engine), len(token[0])
        yield written
        position += length


def _sign(sign: str, position: int, engine: Engine) -> str:
    if sign == ".":
        return _MEANING[engine].get(".", (".", "."))[0]
    if len(sign) > 1 and sign.endswith("+"):
        raise _refused(sign, position)
    if sign in ("{", "}", "]", "["):
        return f"\\{sign}" if sign != "[" else _no_set(position)
    if sign.startswith("{"):
        numbers = [int(number) for number in re.findall(r"\d+", sign)]
        if not numbers or sign[1] == "," or max(numbers) > _MOST_REPEATS:
            raise _refused(sign, position)
    return sign


def _no_set(position: int) -> str:
    raise ToolError(f"the pattern has a [ without its ] at position {position}; write \\[ for the sign")


def _escape(text: str, position: int, engine: Engine, *, in_set: bool) -> tuple[str, int]:
    """Return what a backslash and what follows it are written as, and how many characters those are."""
    sign = text[position + 1 : position + 2]
    if sign in _CLASSES:
        outside, inside = _MEANING[engine].get(sign, (f"\\{sign}",) * 2)
        if in_set and not inside:
            raise ToolError(f"the pattern has \\{sign} in a set at position {position}, which is not understood there")
        return (inside if in_set else outside), 2
    if sign == "x" and (digits := re.match(r"[0-9A-Fa-f]{2}", text[position + 2 :])) and digits[0].lower() != "0a":
        return f"\\x{digits[0]}", 4
    if sign and not sign.isalnum() and sign.isascii():
        return (f"\\{sign}" if sign in r"\.+*?()|[]{}^$#&-~" else sign), 2
    if sign in _PLAIN_ESCAPES and not (in_set and sign in "bB"):
        return f"\\{sign}", 2
    raise _refused(f"\\{sign}", position)


def _set(text: str, position: int, engine: Engine) -> str:
    """Return a set; signs that begin something in one engine only are escaped."""
    opening = "[^" if text.startswith("[^") else "["
    written, at = [_MEANING[engine].get(opening, ("", opening))[1]], len(opening)
    if "--" in text:
        raise _refused("--", position + text.index("--"))
    while at < len(text) - 1:
        if text[at] == "\\":
            piece, length = _escape(text, at, engine, in_set=True)
        else:
            piece, length = (f"\\{text[at]}" if text[at] in "[]&~|" else text[at]), 1
        if text[at] == "[" and text[at + 1] in ":.=":
            raise _refused(text[at : at + 2], position + at)
        written.append(piece)
        at += length
    return "".join(written) + "]"


def _group(text: str, opening: str, position: int) -> tuple[str, int]:
    if opening == "(":
        return opening, 1
    if text.startswith("(?:", position):
        return "(?:", 3
    if position == 0 and text.startswith("(?i)"):
        return "(?i)", 4
    raise _refused(text[position : position + 4], position)


def _check_balance(text: str) -> None:
    if not text:
        raise ToolError("the pattern is empty; give what to look for")


def _refused(what: str, position: int) -> ToolError:
    return ToolError(
        f"the pattern holds {what[:12]!r} at position {position}, which is not supported (no look-around, back "
        "references, named groups or Unicode classes); literal=true takes a text as it is"
    )
