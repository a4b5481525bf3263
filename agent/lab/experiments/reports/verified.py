"""Verified: with how many states each protocol was model-checked.

`make verified` wrote it down for those that ship; of others a file beside the plan may say it.
"""

import csv
from importlib.resources import files
from pathlib import Path

from attrs import frozen

__all__ = ["Verified", "read_verified", "shipped_verdicts"]


@frozen
class Verified:
    """What model-checking a set of protocols with the loop came to: "holds", "bounded" or "violated"."""

    verdict: str
    states: int

    def __str__(self) -> str:
        if self.verdict == "violated":
            return "violated"
        return f"{'> ' if self.verdict == 'bounded' else ''}{self.states:,} states"


def shipped_verdicts() -> dict[str, Verified]:
    """Return the verdicts about protocols that ship, and some sets of them."""
    return read_verified(Path(str(files("agent.lab.experiments") / "verified.csv")))


def read_verified(path: Path) -> dict[str, Verified]:
    """Return the verdicts in a file, by the names of the protocols with "+" between them; none without a file.

    Raises ValueError for a file that is none of verdicts.
    """
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    try:
        return {line["protocols"]: Verified(line["verdict"], int(line["states"])) for line in lines}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: no file of verdicts; make verified writes one") from error
