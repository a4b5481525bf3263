"""What goes through a pipe: known text, names of files, something fetched, something decoded, or anything."""

from enum import Enum, auto

from attrs import frozen

__all__ = ["ANYTHING", "NOTHING", "Flow", "Origin"]


class Origin(Enum):
    """Where the bytes of a pipe come from."""

    NOTHING = auto()
    TEXT = auto()  # exactly known
    NAMES = auto()  # names below known folders
    FETCHED = auto()
    DECODED = auto()
    FILE = auto()
    ANYTHING = auto()


@frozen
class Flow:
    """The content of a pipe. `text` is set for TEXT; `names` (each below a known folder) for NAMES and FILE."""

    origin: Origin
    text: str = ""
    names: tuple[str, ...] = ()


NOTHING = Flow(Origin.NOTHING)
ANYTHING = Flow(Origin.ANYTHING)
