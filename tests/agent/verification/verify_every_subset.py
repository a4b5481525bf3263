"""`make verify`: model-check the loop with subsets of its rules, and write the table into docs/verification.md.

Their number doubles with every rule: all of them are looked at with `SUBSETS=all` (hours), else those in which at most
three rules are there, or at most three are missing. What only shows with four rules that are there and four that are
not would be missed by that.

Exit code 0 when all hold, else 1, and the counterexamples are printed.
"""

import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

from attrs import evolve, frozen

from agent.presets.shipped import PRESETS
from agent.verification.counterexample import tell
from agent.verification.environment import EXAMPLES, FIRST, SECOND, Examples, drafts
from agent.verification.loop import Combination, every_subset, loop_rules, verify_loop
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import InferenceFinished, InferenceRequested
from agent.vocabulary.messages import AssistantMessage
from bp import Event, Verification
from tests.agent.verification.many_loops import loops_of, verify_each

DOCUMENT = Path(__file__).parents[3] / "docs" / "verification.md"
BEGIN, END = "<!-- the table that `make verify` writes begins here -->", "<!-- and ends here -->"

RULES = loop_rules(evolve(PRESETS["default"], together="none"))
NAMES = tuple(rule.name for rule in RULES)


AT_ONCE = 64  # subsets in one search
FEW = len(NAMES) if os.environ.get("SUBSETS") == "all" else 3  # rules that are there, or missing


@frozen
class Row:
    """What verifying one or several combinations gave."""

    label: str
    subsets: int
    size: int  # rules in each
    states: int
    holds: bool
    stories: tuple[str, ...]


def three_calls(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer, with an answer of three calls among it."""
    calls = (FIRST, SECOND, ToolCall("c3", "third"))
    return (*drafts(requested), InferenceFinished(requested.draft, AssistantMessage(), calls))


THREE_CALLS: Examples = {**EXAMPLES, InferenceRequested: three_calls}


def check(combination: Combination, examples: Examples = EXAMPLES) -> Row:
    """Verify the loop with the rules of one combination."""
    present = [rule for rule in RULES if rule.name in combination.rules]
    return row_of(combination.label, (combination,), verify_loop(present, examples=examples))


def check_together(combinations: tuple[Combination, ...]) -> Row:
    """Verify the loop with each of several combinations of equally many rules."""
    return row_of("together", combinations, verify_each(loops_of(RULES, combinations)))


def row_of(label: str, combinations: tuple[Combination, ...], result: Verification) -> Row:
    """Return the result as it is told, and sent from process to process."""
    return Row(
        label,
        len(combinations),
        len(combinations[0].rules),
        result.states,
        result.holds,
        tuple(map(tell, result.violations)),
    )


def check_all() -> list[Row]:
    """Verify the subsets, on all processors, and tell how far it is."""
    looked_at = [subset for subset in every_subset(NAMES) if is_looked_at(len(subset.rules))]
    batches = [
        subsets[start : start + AT_ONCE]
        for _, group in groupby(looked_at, key=lambda subset: len(subset.rules))
        for subsets in [tuple(group)]
        for start in range(0, len(subsets), AT_ONCE)
    ]
    rows = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(check_together, batches):
            rows.append(row)
            print(f"{sum(row.subsets for row in rows)} of {len(looked_at)} subsets", file=sys.stderr, flush=True)
    return rows


def is_looked_at(size: int) -> bool:
    """Whether subsets of so many rules are verified."""
    return size <= FEW or size >= len(NAMES) - FEW


def table(rows: Sequence[Row], named: Sequence[Row]) -> str:
    """Return the table: the named combinations one by one, and all subsets by their size."""
    lines = ["| rules | subsets | states | |", "| --- | ---: | ---: | --- |"]
    lines += [_line(row.label, [row]) for row in named]
    for size in filter(is_looked_at, range(len(NAMES) + 1)):
        lines.append(_line(str(size), [row for row in rows if row.size == size]))
    lines.append(_line(f"these, of {2 ** len(NAMES):,}", rows))
    return "\n".join(lines)


def _line(label: str, rows: Sequence[Row]) -> str:
    return f"| {label} | {sum(row.subsets for row in rows):,} | {sum(row.states for row in rows):,} | {verdict(rows)} |"


def verdict(rows: Sequence[Row]) -> str:
    """Return whether all hold."""
    return "holds" if all(row.holds for row in rows) else "**broken**"


def write(text: str) -> None:
    """Put the table between its marks in the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Verify everything, write the table, and tell what is broken."""
    parallel = tuple(name for name in NAMES if name != "one_at_a_time")
    named = [
        check(Combination("all, three calls", NAMES), THREE_CALLS),
        check(Combination("in parallel, three calls", parallel), THREE_CALLS),
    ]
    rows = check_all()
    write(table(rows, named))
    broken = [row for row in (*named, *rows) if not row.holds]
    for row in broken:
        print(*row.stories, sep="\n\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
