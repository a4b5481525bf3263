"""Glob patterns, as in `src/**/*.{ts,tsx}`: which relative paths they mean.

    *  any characters but /      ?  one of them      [abc] [a-z] [!a]  one of a set      \\*  the character itself
    ** as a whole part of the pattern: any number of directories      {a,b}  one or the other

Matching takes time linear in the path, whatever the pattern.
"""

import fnmatch
import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from agent.tools.errors import ToolError

__all__ = ["Glob", "make_glob"]

_MOST_ALTERNATIVES = 256
_MOST_CHARACTERS = 4096
_ANY_DEPTH = None
Part = re.Pattern[str] | None  # None: any number of directories


@frozen
class Glob:
    """A pattern that was read: each alternative as its parts."""

    alternatives: tuple[tuple[Part, ...], ...]
    hidden: bool

    def matches(self, path: str) -> bool:
        """Whether the pattern means `path`, relative and with / between its names."""
        names = path.split("/")
        return any(self._matches(parts, names) for parts in self.alternatives)

    def _matches(self, parts: tuple[Part, ...], names: list[str]) -> bool:
        """Go through the names once, with the set of places in the pattern where one can be."""
        if self.hidden and len(parts) == 2 and parts[0] is _ANY_DEPTH and parts[1] is not _ANY_DEPTH:
            return parts[1].match(names[-1]) is not None  # most patterns are like that
        places = _with_skips({0}, parts)
        for name in names:
            places = _with_skips({after for place in places for after in self._step(place, parts, name)}, parts)
        return len(parts) in places

    def _step(self, place: int, parts: tuple[Part, ...], name: str) -> Iterator[int]:
        if place == len(parts):
            return
        part = parts[place]
        if part is _ANY_DEPTH:
            if self.hidden or not name.startswith("."):
                yield place
        elif part.match(name):
            yield place + 1


def make_glob(pattern: str, *, anywhere: bool = False, hidden: bool = True) -> Glob:
    """Return a pattern. Raises ToolError for one that cannot be read or leaves its directory.

    anywhere: a pattern without / is about names in any directory. hidden: wildcards mean names that begin with a dot.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise ToolError(f"the pattern has {len(pattern)} characters; {_MOST_CHARACTERS} are the most")
    if pattern.startswith("/") or ".." in re.split(r"[/{},]", pattern):
        raise ToolError(f"the pattern {pattern[:80]!r} leaves its directory; give one relative to it, without ..")
    if "\0" in pattern or not pattern.strip("/"):
        raise ToolError(f"{pattern[:80]!r} is no pattern; give one such as *.py or src/**/*.py")
    expanded = tuple(_expand(pattern))
    return Glob(tuple(_parts(alternative, anywhere=anywhere, hidden=hidden) for alternative in expanded), hidden)


def _expand(pattern: str) -> list[str]:
    """Return the alternatives that braces make of a pattern."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise ToolError(f"the pattern has more than {_MOST_ALTERNATIVES} alternatives")
        first = waiting.pop()
        found = _innermost_braces(first)
        if found is None:
            done.append(first)
        else:
            start, end = found
            waiting += [first[:start] + choice + first[end + 1 :] for choice in first[start + 1 : end].split(",")]
    return done[::-1]


def _innermost_braces(pattern: str) -> tuple[int, int] | None:
    """Return where the first } and its { stand; braces in a set or after a backslash are characters."""
    opened: list[int] = []
    for position, sign in _signs(pattern):
        if sign == "{":
            opened.append(position)
        elif sign == "}" and opened:
            return opened[-1], position
    return None


def _signs(pattern: str) -> Iterator[tuple[int, str]]:
    """Yield the characters that mean something: not those after a backslash or in a set."""
    position = 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "[" and (end := pattern.find("]", position + 2)) != -1:
            position = end
        elif sign == "\\":
            position += 1
        else:
            yield position, sign
        position += 1


def _parts(pattern: str, *, anywhere: bool, hidden: bool) -> tuple[Part, ...]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    found: list[Part] = []
    if anywhere and "/" not in pattern.strip("/"):
        found.append(_ANY_DEPTH)
    for name in names:
        if name != "**":
            found.append(_name_pattern(name, hidden))
        elif not found or found[-1] is not _ANY_DEPTH:
            found.append(_ANY_DEPTH)
    if found and found[-1] is _ANY_DEPTH:
        found.append(_name_pattern("*", hidden))
    return tuple(found)


@lru_cache(maxsize=1024)
def _name_pattern(name: str, hidden: bool) -> re.Pattern[str]:
    """Return a pattern for one name. The translation of `fnmatch` never goes back over what it has matched."""
    try:
        plain = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], name)
        translated = fnmatch.translate(plain.replace("[^", "[!"))
        guard = "" if hidden or name.startswith(".") else r"(?!\.)"
        return re.compile(guard + translated)
    except re.error as error:
        raise ToolError(f"the pattern {name[:80]!r} cannot be read: {error}") from error


def _with_skips(places: set[int], parts: tuple[Part, ...]) -> set[int]:
    """Any number of directories may be none."""
    return places | {place + 1 for place in places if place < len(parts) and parts[place] is _ANY_DEPTH}
