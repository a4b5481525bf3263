"""What an annotation may say about a parameter: its limits, and what the gate must know about it.

    def copy(source: Annotated[str, Path("read")], lines: Annotated[int, Limits(minimum=1)] = 10) -> str: ...

Limits belong to the schema and the check alike. `Path`, `ShellCommand` and `Url` are facts for judging: they change
nothing in what a tool accepts.
"""

from typing import Literal

from attrs import field, frozen

from agent.tools.automata import TextPattern

__all__ = ["Access", "Limits", "Path", "ShellCommand", "Touch", "Url"]

Access = Literal["read", "write", "list", "delete", "execute"]


def _as_pattern(text: str | None) -> TextPattern | None:
    return None if text is None else TextPattern(text)


@frozen
class Limits:
    """What a value must keep to, beyond its type.

    `minimum` and `maximum` are inclusive, `above` is exclusive: for numbers. `max_length` counts characters of a text
    or elements of a list. `pattern` must match the whole text; it is a regular expression in which `\\d` and `\\w` mean
    ASCII, as in JSON Schema, without look-around and back references: ValueError.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    max_length: int | None = None
    pattern: TextPattern | None = field(default=None, converter=_as_pattern)


@frozen
class Path:
    """Marks a parameter whose texts are paths, and what the tool does there."""

    access: Access


@frozen
class ShellCommand:
    """Marks the parameter that holds a shell command; `prefix` is put before it when it runs."""

    prefix: str = ""


@frozen
class Url:
    """Marks a parameter that holds the address of something that is fetched."""


@frozen
class Touch:
    """A path that a call names, and what the call would do to it."""

    path: str
    access: Access
