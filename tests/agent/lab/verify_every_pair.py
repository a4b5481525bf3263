"""`make protocols`: model-check the loop with each protocol, with every pair, and with some random sets of three.

Give a number to look at no more states than that of each (default: a million). Exit code 0 when all hold, else 1.
"""

import sys
from collections.abc import Iterator
from itertools import combinations
from random import Random

from agent.lab.verification import FEW_EXAMPLES, verify_protocols
from agent.verification import tell
from bp import BThread, Verification
from tests.agent.lab.protocol_programs import IN_PAIRS, PROGRAMS, rules_named

TRIPLES = 20


def programs() -> Iterator[tuple[str, tuple[BThread, ...]]]:
    """Every set of protocols that is looked at, and its name."""
    yield from PROGRAMS.items()
    for names in (*combinations(IN_PAIRS, 2), *triples()):
        yield " + ".join(names), tuple(dict.fromkeys(bthread for name in names for bthread in IN_PAIRS[name]))


def triples() -> list[tuple[str, ...]]:
    """Some sets of three, always the same."""
    random = Random(0)
    return [tuple(sorted(random.sample(sorted(IN_PAIRS), 3))) for _ in range(TRIPLES)]


def verdict(result: Verification) -> str:
    return "violated" if result.violations else "bounded" if result.bounded else "holds"


def main(most: int) -> int:
    """Look at all of them; return the exit code."""
    rules = rules_named("abort_on_request")
    code = 0
    for name, program in programs():
        alone = name in PROGRAMS
        examples = None if alone else FEW_EXAMPLES
        with_retries = (*rules, *rules_named("retry")) if alone else rules
        result = verify_protocols(program, with_retries, examples=examples, max_states=most)
        print(f"{verdict(result):8}  {result.states:>9,} states, {result.seconds:6.1f} s: {name}", flush=True)
        for violation in result.violations:
            print(f"\n{tell(violation)}\n")
        code = code if result.holds else 1
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
