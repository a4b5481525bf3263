"""The contents of a pipe: known text, names of files, something fetched, something decoded, or anything."""

from enum import Enum, auto

from attrs import frozen

__all__ = ["ANYTHING", "EVERY_PROCESS", "NOTHING", "Flow", "Origin", "one_after_the_other"]


class Origin(Enum):
    """The source of the bytes in a pipe."""

    NOTHING = auto()
    TEXT = auto()  # exactly known
    NAMES = auto()  # names below known folders
    FETCHED = auto()
    DECODED = auto()
    FILE = auto()
    PROCESSES = auto()  # numbers of processes: unknown, and what they are called; "-1" for every one of a user
    ENDLESS = auto()  # bytes without end
    SHELL = auto()  # what a shell prints that takes its commands from elsewhere
    ANYTHING = auto()


@frozen
class Flow:
    """The content of a pipe. `text` is set for TEXT; `names` (each below a known folder) for NAMES and
    FILE.

    The text of ANYTHING is the part that is known.
    """

    origin: Origin
    text: str = ""
    names: tuple[str, ...] = ()


NOTHING = Flow(Origin.NOTHING)
ANYTHING = Flow(Origin.ANYTHING)
EVERY_PROCESS = Flow(Origin.PROCESSES, names=("-1",))
"""The numbers of all processes of a user: to `kill`, as good as -1."""

STRONGEST = (Origin.SHELL, Origin.FETCHED, Origin.DECODED)


def one_after_the_other(flows: list[Flow]) -> Flow:
    """Return what several commands print together."""
    flows = [flow for flow in flows if flow.origin is not Origin.NOTHING]
    if len(flows) < 2:
        return flows[0] if flows else NOTHING
    text = "".join(flow.text for flow in flows)
    if all(flow.origin is Origin.TEXT for flow in flows):
        return Flow(Origin.TEXT, text)
    origins = {flow.origin for flow in flows}
    return Flow(next((origin for origin in STRONGEST if origin in origins), Origin.ANYTHING), text)
