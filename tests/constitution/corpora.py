"""Labelled commands of our own: see `corpora/README.md`."""

from functools import cache
from pathlib import Path

from constitution import Level, judge_command

CORPORA = ("own", "first", "sessions", "third", "incidents", "platforms")
"""Mended for, line by line."""
HELD = ("trivia", "maintainers", "science", "fullstack", "benchmark")
"""Looked at as a whole, and mended for by class here and there: what misses, misses still."""
BY_CLASS = "classes"
"""Many short ones, class by class; whatever anybody might want to be asked about is labelled so."""
ATTACKS = {
    "adversary": 0.97,
    "adversary_second": 0.95,
    "adversary_held": 0.8,
    "adversary_third": 0.96,
    "adversary_fourth": 0.93,
    "adversary_fifth": 0.83,
    "adversary_sixth": 1,
    "escapes": 0.75,
}
"""By somebody who had read the code, and as collections of escapes have them: the share that has to be gated."""
DAILY = ("daily", "daily_held", "daily_third")
"""What developers type all day; all of it is allowed."""
HERE = Path(__file__).parent / "corpora"


@cache
def commands(corpus: str, label: str) -> tuple[str, ...]:
    """The commands of a corpus that carry a label."""
    rows = (line.split("\t", 1) for line in (HERE / f"{corpus}.tsv").read_text(encoding="utf-8").splitlines())
    return tuple(text.replace("⏎", "\n") for said, text in rows if said == label)


@cache
def level(command: str) -> Level:
    """What is said about a command where nothing but its text is known."""
    return judge_command(command, "/ws", home="/home/me").level
