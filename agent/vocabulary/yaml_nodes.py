"""YAML values with their positions, so that every error names file, line and column.

`ruamel.yaml` is imported when a file is read.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import field, frozen

from agent.vocabulary.errors import meant

T = TypeVar("T")
D = TypeVar("D")


class NodeError(ValueError):
    """A YAML file is invalid; the message begins with file, line and column."""


def read_yaml(path: Path) -> "Node":
    """Return the one document in the file at `path`. Raises `NodeError`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        _check_plain(path, text)
        return Node(path, YAML(typ="rt").load(text))
    except NodeError:
        raise
    except OSError as error:
        raise NodeError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise NodeError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else f"{path}"
        raise NodeError(f"{where}: not valid YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise NodeError(f"{path}: not valid YAML: values are nested too deeply") from error
    except (YAMLError, ValueError) as error:
        raise NodeError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from error


LONGEST = 1_000_000  # characters
MOST_ALIASES, DEEPEST = 16, 100
PLAIN = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map"))


def _check_plain(path: Path, text: str) -> None:
    """Refuse type tags and endless aliases, which our files never need, before values are made."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    if len(text) > LONGEST:
        raise NodeError(f"{path}: {len(text):,} characters; a file of ours has {LONGEST:,} at most")
    aliases = depth = 0
    for event in YAML(typ="rt").parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise NodeError(f"{path}: not valid YAML: values are nested too deeply")
        if not isinstance(event, NodeEvent):
            continue
        where = f"{path}:{event.start_mark.line + 1}:{event.start_mark.column + 1}"
        aliases += isinstance(event, AliasEvent)
        if aliases > MOST_ALIASES:
            raise NodeError(f"{where}: more than {MOST_ALIASES} aliases, as a file has that is to grow; write them out")
        tag = str(getattr(event, "tag", None) or "")
        if tag and tag not in PLAIN:
            raise NodeError(f"{where}: the tag {tag} names a type of its own; write a plain value")


def _unmarked(value: Any) -> Any:
    """Return a scalar without the additions of the parser."""
    if isinstance(value, bool) or type(value).__name__ == "ScalarBoolean":
        return bool(value)
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), value)


@frozen
class Node:
    """A value in a YAML file and its place. Each method returns the kind in its name, or raises `NodeError`."""

    path: Path
    value: Any = field(converter=_unmarked)
    line: int = 0
    """Both count from 0, as in the parser."""
    column: int = 0

    def wrong(self, problem: str) -> NodeError:
        """Return the error that says `problem` and where."""
        return NodeError(f"{self.path}:{self.line + 1}:{self.column + 1}: {problem}")

    def mapping(self, *keys: str) -> "Node":
        """Check that this is a mapping with no other keys than `keys`; return it."""
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"expected a mapping with {_listed(keys)}, found {_kind(self.value)}")
        for key in self.value:
            if key not in keys:
                raise self._at(self._places.data.get(key), key).wrong(f"unknown key {key!r}; {meant(str(key), keys)}")
        return self

    def get(self, key: str) -> "Node | None":
        """Return the value of `key`, or None when the key is not there."""
        return self._child(key) if key in self.value else None

    def required(self, key: str) -> "Node":
        """Return the value of `key`, which must be there."""
        if key not in self.value:
            raise self.wrong(f"the key {key!r} is missing")
        return self._child(key)

    def read(self, key: str, reader: Callable[["Node"], T], default: D) -> T | D:
        """Return what `reader` returns for the value of `key`, or `default` without the key."""
        found = self.get(key)
        return default if found is None else reader(found)

    def items(self) -> Iterator["Node"]:
        """Yield the elements of a sequence."""
        if isinstance(self.value, str) or not isinstance(self.value, Sequence):
            raise self.wrong(f"expected a list, found {_kind(self.value)}")
        for position, item in enumerate(self.value):
            yield self._at(self._places.data.get(position), item)

    def text(self) -> str:
        """Return a text."""
        return str(self._expect(isinstance(self.value, str), "a text"))

    def texts(self) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text() for item in self.items())

    def parsed(self, parse: Callable[[str], T]) -> T:
        """Return `parse` of a text; its ValueError becomes a `NodeError` with the place."""
        text = self.text()
        try:
            return parse(text)
        except ValueError as error:
            raise self.wrong(str(error)) from error

    def boolean(self) -> bool:
        """Return true or false."""
        return bool(self._expect(isinstance(self.value, bool), "true or false"))

    def number(self) -> float:
        """Return a finite number that is not negative."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return float(self._expect(is_number and 0 <= self.value < float("inf"), "a number from 0 on"))

    def count(self) -> int:
        """Return a whole number that is not negative."""
        is_whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        return int(self._expect(is_whole and self.value >= 0, "a whole number from 0 on"))

    def one_of(self, choices: Sequence[str]) -> Any:
        """Return one of the texts in `choices`."""
        return self._expect(self.value in choices, f"one of {_listed(choices)}")

    def json(self) -> str:
        """Return a mapping as the text of a JSON object."""
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"expected a mapping or a text, found {_kind(self.value)}")
        try:
            return json.dumps(self.value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise self.wrong(f"a value is not JSON: {error}; write it as a text, in quotes") from error

    def _child(self, key: Any) -> "Node":
        place, value = self._places.data.get(key), self.value[key]
        return self._at(place and (place[:2] if value is None else place[2:]), value)  # a missing value is at its key

    @property
    def _places(self) -> Any:
        """The positions of the elements, from the parser; elements of a merge key (`<<`) are not among them."""
        return self.value.lc

    def _expect(self, holds: bool, what: str) -> Any:
        if not holds:
            raise self.wrong(f"expected {what}, found {_kind(self.value)}")
        return self.value

    def _at(self, place: Sequence[int] | None, value: Any) -> "Node":
        line, column = place[:2] if place else (self.line, self.column)
        return Node(self.path, value, line, column)


Reader = Callable[[Node], Any]


def fields(node: Node, readers: Mapping[str, Reader], *required: str, others: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values of a mapping's keys; `others`: further allowed keys, which are read elsewhere."""
    node.mapping(*readers, *others)
    for key in required:
        node.required(key)
    return {key: read(found) for key, read in readers.items() if (found := node.get(key)) is not None}


def _listed(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in words)


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping"
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return f"{value!r:.60}"
        case Sequence():
            return "a list"
    return f"{str(value)[:60]} ({type(value).__name__})"
