"""`make verify`: model-check the loop with every subset of its rules, and write the table into docs/invariants.md.

Exit code 0 when all hold, else 1, and the counterexamples are printed.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attrs import frozen

from agent.calls import ToolCall
from agent.events import InferenceFinished, InferenceRequested
from agent.messages import AssistantMessage
from agent.presets import PRESETS
from agent.verification import Combination, every_subset, loop_rules, small_combinations, tell, verify_loop
from agent.verification.environment import EXAMPLES, FIRST, SECOND, Examples, drafts
from bp import Event

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "invariants.md"
BEGIN, END = "<!-- the table that `make verify` writes begins here -->", "<!-- and ends here -->"

RULES = loop_rules(PRESETS["default"])
NAMES = tuple(rule.name for rule in RULES)


@frozen
class Row:
    """What verifying one combination gave."""

    label: str
    size: int
    states: int
    transitions: int
    seconds: float
    holds: bool
    stories: tuple[str, ...]


def three_calls(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer, with an answer of three calls among it."""
    calls = (FIRST, SECOND, ToolCall("c3", "third"))
    return (*drafts(requested), InferenceFinished(requested.draft, AssistantMessage(), calls))


THREE_CALLS: Examples = {**EXAMPLES, InferenceRequested: three_calls}


def check(combination: Combination, examples: Examples = EXAMPLES) -> Row:
    """Verify the loop with the rules of `combination`."""
    result = verify_loop([rule for rule in RULES if rule.name in combination.rules], examples=examples)
    stories = tuple(map(tell, result.violations))
    return Row(
        combination.label,
        len(combination.rules),
        result.states,
        result.transitions,
        result.seconds,
        result.holds,
        stories,
    )


def check_with_three_calls(combination: Combination) -> Row:
    """Verify the loop against a model that may ask for three calls at once."""
    return check(combination, THREE_CALLS)


def check_all(combinations: Sequence[Combination]) -> list[Row]:
    """Verify all combinations, on all processors, and tell how far it is."""
    rows = []
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawning) as pool:
        for row in pool.map(check, combinations, chunksize=8):
            rows.append(row)
            print(f"\r{len(rows)} of {len(combinations)} subsets", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def table(rows: Iterable[Row], more: Sequence[Row]) -> str:
    """Return the table: the named combinations one by one, the others by their size."""
    rows = list(rows)
    named = {combination.label: combination for combination in small_combinations(NAMES)}
    by_rules = {row.label: row for row in rows}
    lines = ["| rules | states | transitions | seconds | |", "| --- | ---: | ---: | ---: | --- |"]
    for label, combination in named.items():
        if len(combination.rules) != 2:
            row = by_rules[" + ".join(combination.rules) or "none"]
            lines.append(f"| {label} | {row.states:,} | {row.transitions:,} | {row.seconds:.1f} | {verdict([row])} |")
    lines += [
        f"| {row.label} | {row.states:,} | {row.transitions:,} | {row.seconds:.1f} | {verdict([row])} |" for row in more
    ]
    lines += ["", "| subsets of | how many | most states | states in all | seconds in all | |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | --- |"]
    for size in range(len(NAMES) + 1):
        lines.append(_summary(f"{size} rules", [row for row in rows if row.size == size]))
    lines.append(_summary("any", rows))
    return "\n".join(lines)


def _line(label: str, row: Row) -> str:
    return f"| {label} | {row.states:,} | {row.transitions:,} | {row.seconds:.1f} | {verdict([row])} |"


def _summary(label: str, rows: Sequence[Row]) -> str:
    states = [row.states for row in rows]
    seconds = sum(row.seconds for row in rows)
    return f"| {label} | {len(rows):,} | {max(states):,} | {sum(states):,} | {seconds:.0f} | {verdict(rows)} |"


def verdict(rows: Sequence[Row]) -> str:
    """Return whether all hold."""
    broken = sum(not row.holds for row in rows)
    return f"**{broken} broken**" if broken else "holds"


def write(text: str) -> None:
    """Put the table between its marks in the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Verify everything, write the table, and tell what is broken."""
    rows = check_all(tuple(every_subset(NAMES)))
    parallel = tuple(name for name in NAMES if name != "one_at_a_time")
    more = [
        check_with_three_calls(Combination("all, up to three calls at a time", NAMES)),
        check_with_three_calls(Combination("without one_at_a_time, up to three calls at a time", parallel)),
    ]
    write(table(rows, more))
    broken = [row for row in (*rows, *more) if not row.holds]
    for row in broken:
        print(f"{row.label}\n", *row.stories, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
