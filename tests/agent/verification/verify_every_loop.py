"""`make verify` and `make presets`: model-check many loops, and write a table of each into docs/verification.md.

`make verify` looks at the loop with subsets of its rules. Their number doubles with every rule: all of them are looked
at with `SUBSETS=all` (hours), else those in which at most three rules are there, or at most three are missing. What
only shows with four rules that are there and four that are not would be missed by that.

`make presets` looks at every preset with every protocol and temporal policy, and at `default` with every pair.
Each program is looked at in every situation: what people may say meanwhile, in any order and any number of times; pairs
while people may stop and abort. That is with few outcomes of effects, and once more with all that `bpagent verify`
takes. Give a number to look at no more states than that of each (default: a million). Random runs of each program are
killed, too, and resumed.

Both follow two real runs of each program, and end with an error where one is not as the model says; they do not measure
how much of a program was run, as `bpagent verify` does. What is violated is printed as soon as it is found. Exit code 0
when nothing is violated, else 1.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from attrs import evolve

from agent.presets import PRESETS
from agent.protocols.policies import eventually, never, no_more_than, only_after
from agent.verification import loop_rules
from agent.verification.counterexample import tell
from agent.verification.environment import people_for
from agent.vocabulary.events import AbortAsked, FollowUpGiven, PromptGiven, SteeringGiven, StopAsked
from bp import BThread, Event, Verification
from tests.agent.protocols.protocol_programs import IN_PAIRS, PROGRAMS, together
from tests.agent.verification.many_loops import few_examples_for, kill_and_resume, loops_of, verify_each

PAGE = Path(__file__).parents[3] / "docs" / "verification.md"
BY_DEFAULT = 1_000_000  # states


def write(target: str, table: str) -> None:
    """Put a table between the two marks of a target of `make` on the page."""
    begin, end = f"<!-- written by make {target} -->\n", f"<!-- end of what make {target} writes -->\n"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    PAGE.write_text(f"{before}{begin}{table}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def processes() -> ProcessPoolExecutor:
    """Return a pool of all processors."""
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


# `make verify`

RULES = loop_rules(evolve(PRESETS["default"], together="none"))
NAMES = tuple(rule.name for rule in RULES)
AT_ONCE = 64  # subsets that one process looks at, one after the other
FEW = len(NAMES) if os.environ.get("SUBSETS") == "all" else 3  # rules that are there, or missing

Subsets = tuple[tuple[str, ...], ...]


def batches() -> Iterator[Subsets]:
    """Yield the subsets that are looked at, of equally many rules together."""
    for size in range(len(NAMES) + 1):
        if size <= FEW or size >= len(NAMES) - FEW:
            subsets = tuple(combinations(NAMES, size))
            yield from (subsets[start : start + AT_ONCE] for start in range(0, len(subsets), AT_ONCE))


def check(subsets: Subsets) -> tuple[int, Counter[str]]:
    """Verify the loop with each of several subsets; print what is violated; return their size, and what was counted."""
    found: Counter[str] = Counter(subsets=len(subsets))
    for label, _, result in verify_each(loops_of(RULES, subsets)):
        found.update(states=result.states, broken=bool(result.violations))
        for violation in result.violations:
            print(f"{label}\n\n{tell(violation)}\n", flush=True)
    return len(subsets[0]), found


def verify_subsets() -> int:
    """Verify the subsets, tell how far it is, and write the table; return the exit code."""
    by_size: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    with processes() as pool:
        for size, found in pool.map(check, batches()):
            by_size[str(size)].update(found)
            total.update(found)
            print(f"{total['subsets']} subsets, {total['broken']} broken", file=sys.stderr, flush=True)
    lines = [
        f"| {label} | {some['subsets']:,} | {some['states']:,} | {'**broken**' if some['broken'] else 'holds'} |"
        for label, some in (*by_size.items(), (f"these, of {2 ** len(NAMES):,}", total))
    ]
    write("verify", "\n".join(["", "| rules | subsets | states | |", "| --- | ---: | ---: | --- |", *lines, ""]))
    return int(bool(total["broken"]))


# `make presets`

SITUATIONS: Mapping[str, tuple[type[Event], ...]] = {
    "anything": (Event,),
    "stop": (StopAsked,),
    "stop, abort": (StopAsked, AbortAsked),
    "steer": (SteeringGiven,),
    "follow up": (FollowUpGiven,),
}
"""What people may say, by kinds of events; "anything" is what `verify_loop` has by itself."""

PAIRS = "default, pairs of protocols"
ALL_OUTCOMES = "anything, all outcomes"
KILL = "killed, resumed"
COLUMNS = (*SITUATIONS, ALL_OUTCOMES, KILL)

Programs = dict[str, tuple[BThread, ...]]
Found = defaultdict[tuple[str, str], Counter[str]]
"""How many programs held, by their group and the situation; and how many killed runs were resumed."""


def policies() -> Iterator[tuple[str, tuple[BThread, ...]]]:
    """Every temporal pattern, with everything that it may do instead of refusing."""
    choices: tuple[Literal["refuse", "ask", "stop"], ...] = ("refuse", "ask", "stop")
    for otherwise in choices:
        yield f"only_after ({otherwise})", (only_after("second", "first", otherwise=otherwise),)
        yield f"never ({otherwise})", (never("second", after="first", otherwise=otherwise),)
        yield f"no_more_than ({otherwise})", (no_more_than(1, "first", otherwise=otherwise),)
        if otherwise != "ask":
            yield f"eventually ({otherwise})", (eventually("second", after="first", otherwise=otherwise),)


def groups() -> dict[str, tuple[Sequence[BThread], Programs]]:
    """Every row of the table: the rules, and the programs beside them."""
    alone = {"nothing": (), **PROGRAMS, **dict(policies())}
    pairs = {" + ".join(pair): together(*pair) for pair in combinations(IN_PAIRS, 2)}
    of_presets = {preset.name: (loop_rules(preset), alone) for preset in PRESETS.values()}
    return {**of_presets, PAIRS: (loop_rules(PRESETS["default"]), pairs)}


def verdict(result: Verification) -> Literal["violated", "bounded", "holds"]:
    return "violated" if result.violations else "bounded" if result.bounded else "holds"


def people_in(situation: str) -> Callable[[Sequence[BThread]], tuple[Event, ...]]:
    """Return what gives what people may say to a loop in a situation; they always may give a prompt."""
    kinds: Any = (PromptGiven, *SITUATIONS[situation])
    return lambda bthreads: tuple(event for event in people_for(bthreads) if isinstance(event, kinds))


def look_at(group: str, most: int) -> Found:
    """Look at all programs of a group; print what came out of each."""
    found: Found = defaultdict(Counter)
    rules, programs = groups()[group]
    situations = {name: people_in(name) for name in (SITUATIONS if group != PAIRS else ("stop, abort",))}
    loops = {name: (rules, protocols) for name, protocols in programs.items()}
    results = verify_each(loops, few_examples_for, situations=situations, max_states=most)
    more = verify_each(loops, situations={ALL_OUTCOMES: people_for}, max_states=most)
    for name, situation, result in chain(results, more):
        found[group, situation][verdict(result)] += 1
        told = f"{verdict(result):8}  {result.states:>9,} states, {result.seconds:6.1f} s: {group}: {name}, {situation}"
        print(told, *(f"\n{tell(violation)}\n" for violation in result.violations), sep="\n", flush=True)
    for name, loop in loops.items() if group != PAIRS else ():
        found[group, KILL].update(_killed(f"{group}: {name}", *loop))
    return found


def verify_presets(most: int) -> int:
    """Look at all groups, and write the table row by row; return the exit code."""
    found: Found = defaultdict(Counter)
    with processes() as pool:
        for of_group in pool.map(partial(look_at, most=most), groups()):
            found.update(of_group)
            write("presets", _table(found, most))
    return int(any(held["violated"] for held in found.values()))


def _killed(label: str, rules: Sequence[BThread], protocols: Sequence[BThread]) -> Iterator[str]:
    """Yield for each place at which a run of a loop was killed whether it was resumed; print how it was not."""
    for problem in kill_and_resume(rules, protocols, few_examples_for((*rules, *protocols)), runs=10, kills=10):
        if problem:
            print(f"violated  {label}, {problem}", flush=True)
        yield "violated" if problem else "resumed"


def _table(found: Found, most: int) -> str:
    groups = dict.fromkeys(group for group, _ in found)
    rows = [
        f"| {group} | {' | '.join(_cell(found.get((group, each), Counter())) for each in COLUMNS)} |"
        for group in groups
    ]
    head = [f"| | {' | '.join(COLUMNS)} |", f"| --- |{' --- |' * len(COLUMNS)}"]
    told = f"Up to {most:,} states of each program (`make presets STATES={most}`):"
    return "\n".join([told, "", *head, *rows])


def _cell(held: Counter[str]) -> str:
    """Return how many held whole (or were resumed), and behind a plus, how many as far as they were looked at."""
    so_far = f"+{held['bounded']}" if held["bounded"] else ""
    violated = f", {held['violated']} **violated**" if held["violated"] else ""
    return f"{held['holds'] + held['resumed']:,}{so_far}{violated}" if held else ""


if __name__ == "__main__":
    states = int(sys.argv[2]) if len(sys.argv) > 2 else BY_DEFAULT
    sys.exit(verify_subsets() if sys.argv[1] == "verify" else verify_presets(states))
