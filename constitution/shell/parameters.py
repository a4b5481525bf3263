"""Operators of `${name...}` on a known value: defaults, cut ends, replacements, slices, case."""

import re
from collections.abc import Callable

__all__ = ["DEFAULTS", "applied"]

DEFAULTS = frozenset([":-", "-", ":=", "=", ":?", "?"])
"""`${name:-word}`: the word stands for a variable that is not set. (`:?` and `?` end the script instead.)"""

LONGEST = 128
"""Characters of values and patterns that are worked out; what is longer is as good as unknown."""

Operation = Callable[[str, str, str], str]


def applied(operator: str, value: str, word: str, second: str) -> str | None:
    """Return what an operator makes of a value, or None for one that is not modelled."""
    operation = OPERATIONS.get(operator)
    if len(value) > LONGEST and operator not in DEFAULTS:
        return None
    try:
        return operation(value, word, second) if operation else None
    except (ValueError, re.error):
        return None


def _cut_end(value: str, word: str, *, longest: bool) -> str:
    starts = range(len(value) + 1) if longest else range(len(value), -1, -1)
    pattern = _pattern(word)
    return next((value[:start] for start in starts if pattern.fullmatch(value, start)), value)


def _cut_start(value: str, word: str, *, longest: bool) -> str:
    ends = range(len(value), -1, -1) if longest else range(len(value) + 1)
    pattern = _pattern(word)
    return next((value[end:] for end in ends if pattern.fullmatch(value, 0, end)), value)


def _slice(value: str, start: str, length: str) -> str:
    value = value[int(start) :] if start.strip() else value
    return value[: int(length)] if length else value


def _replaced(value: str, word: str, second: str, *, count: int) -> str:
    return _pattern(word).sub(lambda _: second, value, count=count) if word else value


def _pattern(word: str) -> re.Pattern[str]:
    """Return a shell pattern as a regular expression; brackets are taken as they stand."""
    if len(word) > LONGEST or word.count("*") > 1:
        raise ValueError("too long: matching would take its time")
    parts = re.split(r"(\*+|\?)", word)
    return re.compile("".join({"*": ".*", "?": "."}.get(part[:1], re.escape(part)) for part in parts), re.S)


OPERATIONS: dict[str, Operation] = {
    "%": lambda value, word, _: _cut_end(value, word, longest=False),
    "%%": lambda value, word, _: _cut_end(value, word, longest=True),
    "#": lambda value, word, _: _cut_start(value, word, longest=False),
    "##": lambda value, word, _: _cut_start(value, word, longest=True),
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
