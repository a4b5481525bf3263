"""`make presets`: model-check every preset with every protocol and temporal policy, and `default` with every pair.

Each program is looked at in every situation: what people may say meanwhile, in any order and any number of times; pairs
while people may stop and abort. Give a number to look at no more states than that of each (default: a million). The
table of what came out is written into docs/verification.md, row by row. Exit code 0 when nothing is violated, else 1.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from agent.presets.shipped import PRESETS
from agent.protocols.policies import eventually, never, no_more_than, only_after
from agent.verification.counterexample import tell
from agent.verification.environment import PEOPLE, people_for
from agent.verification.loop import loop_rules, verify_loop
from agent.vocabulary.events import AbortAsked, FollowUpGiven, SteeringGiven, StopAsked
from bp import BThread, Event, Verification
from tests.agent.protocols.protocol_programs import IN_PAIRS, PROGRAMS
from tests.agent.verification.many_loops import few_examples_for

PAGE = Path(__file__).parents[3] / "docs" / "verification.md"
BEGIN, END = "<!-- written by make presets -->\n", "<!-- end of what make presets writes -->\n"
SITUATIONS: Mapping[str, tuple[type[Event], ...]] = {
    "anything": (Event,),
    "stop": (StopAsked,),
    "stop, abort": (StopAsked, AbortAsked),
    "steer": (SteeringGiven,),
    "follow up": (FollowUpGiven,),
}
"""What people may say, by kinds of events; "anything" is what `verify_loop` has by itself."""

PAIRS = "default, pairs of protocols"

Programs = dict[str, tuple[BThread, ...]]
Found = dict[tuple[str, str], Counter[str]]
"""How many programs held, by their group and the situation."""


def policies() -> Iterator[tuple[str, tuple[BThread, ...]]]:
    """Every temporal pattern, with everything that it may do instead of refusing."""
    choices: tuple[Literal["refuse", "ask", "stop"], ...] = ("refuse", "ask", "stop")
    for otherwise in choices:
        yield f"only_after ({otherwise})", (only_after("second", "first", otherwise=otherwise),)
        yield f"never ({otherwise})", (never("second", after="first", otherwise=otherwise),)
        yield f"no_more_than ({otherwise})", (no_more_than(1, "first", otherwise=otherwise),)
        if otherwise != "ask":
            yield f"eventually ({otherwise})", (eventually("second", after="first", otherwise=otherwise),)


def groups() -> Iterator[tuple[str, Sequence[BThread], Programs]]:
    """Every row of the table: what it is called, the rules, and the programs beside them."""
    for preset in PRESETS.values():
        rules = loop_rules(preset)
        yield preset.name, rules, {"nothing": (), **PROGRAMS, **dict(policies())}
    pairs = {" + ".join(pair): _together(pair) for pair in combinations(IN_PAIRS, 2)}
    yield PAIRS, loop_rules(PRESETS["default"]), pairs


def _together(names: Sequence[str]) -> tuple[BThread, ...]:
    return tuple(dict.fromkeys(bthread for name in names for bthread in IN_PAIRS[name]))


def verdict(result: Verification) -> Literal["violated", "bounded", "holds"]:
    return "violated" if result.violations else "bounded" if result.bounded else "holds"


def main(most: int) -> int:
    """Look at all of them and write the table; return the exit code."""
    found: Found = {}
    for group, rules, programs in groups():
        for situation in SITUATIONS if group != PAIRS else ("stop, abort",):
            held = found[group, situation] = Counter[str]()
            for name, protocols in programs.items():
                held[_verified(f"{group}: {name}, {situation}", rules, protocols, situation, most)] += 1
        PAGE.write_text(_with_table(PAGE.read_text(encoding="utf-8"), found, most), encoding="utf-8")
    return int(any(held["violated"] for held in found.values()))


def _verified(
    label: str, rules: Sequence[BThread], protocols: tuple[BThread, ...], situation: str, most: int
) -> Literal["violated", "bounded", "holds"]:
    examples = few_examples_for((*rules, *protocols))
    possible = [event for event in people_for((*rules, *protocols)) if isinstance(event, SITUATIONS[situation])]
    prompt = [event for event in PEOPLE if event.name == "prompt_given"]
    said = possible if situation == "anything" else [*prompt, *possible]
    result = verify_loop(rules, protocols, examples=examples, possible=said, max_states=most)
    outcome = verdict(result)
    print(f"{outcome:8}  {result.states:>9,} states, {result.seconds:6.1f} s: {label}", flush=True)
    for violation in result.violations:
        print(f"\n{tell(violation)}\n")
    return outcome


def _with_table(page: str, found: Found, most: int) -> str:
    """Return the page with the table between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [
        f"| {group} | {' | '.join(_cell(found.get((group, situation), Counter())) for situation in SITUATIONS)} |"
        for group in dict.fromkeys(group for group, _ in found)
    ]
    head = [f"| | {' | '.join(SITUATIONS)} |", f"| --- |{' --- |' * len(SITUATIONS)}"]
    told = f"Up to {most:,} states of each program (`make presets STATES={most}`):"
    return f"{before}{BEGIN}{told}\n\n" + "\n".join([*head, *rows]) + f"\n{END}{after}"


def _cell(held: Counter[str]) -> str:
    """Return how many programs held whole, and behind a plus, how many as far as they were looked at."""
    so_far = f"+{held['bounded']}" if held["bounded"] else ""
    violated = f", {held['violated']} **violated**" if held["violated"] else ""
    return f"{held['holds']}{so_far}{violated}" if held else ""


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
