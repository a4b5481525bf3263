"""`make protocols`: model-check the loop with each protocol, with every pair, and with random sets of three and more.

All calls of an answer run in parallel. Give a number to look at no more states than that of each (default: a million).
Exit code 0 when each protocol and every pair holds and nothing violates anything, else 1; larger sets may be bounded.
"""

import sys
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Literal

from agent.verification.counterexample import tell
from agent.verification.loop import verify_loop
from bp import BThread, Verification
from tests.agent.protocols.protocol_programs import IN_PAIRS, PROGRAMS, rules_named
from tests.agent.verification.many_loops import few_examples_for

SETS = {3: 20, 4: 10, 5: 5}
"""How many random sets there are of each size."""


def programs() -> Iterator[tuple[str, tuple[BThread, ...]]]:
    """Every set of protocols that is looked at, and its name."""
    yield from PROGRAMS.items()
    for names in (*combinations(IN_PAIRS, 2), *random_sets()):
        yield " + ".join(names), tuple(dict.fromkeys(bthread for name in names for bthread in IN_PAIRS[name]))


def random_sets() -> list[tuple[str, ...]]:
    """Some larger sets, always the same."""
    random = Random(0)
    sizes = [size for size, many in SETS.items() for _ in range(many)]
    return [tuple(sorted(random.sample(sorted(IN_PAIRS), size))) for size in sizes]


def verdict(result: Verification) -> Literal["violated", "bounded", "holds"]:
    return "violated" if result.violations else "bounded" if result.bounded else "holds"


def main(most: int) -> int:
    """Look at all of them; return the exit code."""
    rules = rules_named("abort_on_request")
    code = 0
    for name, program in programs():
        alone = name in PROGRAMS
        examples = None if alone else few_examples_for(program)
        with_retries = (*rules, *rules_named("retry")) if alone else rules
        result = verify_loop(with_retries, program, examples=examples, max_states=most)
        print(f"{verdict(result):8}  {result.states:>9,} states, {result.seconds:6.1f} s: {name}", flush=True)
        for violation in result.violations:
            print(f"\n{tell(violation)}\n")
        is_large = name.count(" + ") > 1
        code = code if result.holds or (is_large and not result.violations) else 1
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
