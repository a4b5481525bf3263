"""`make presets`: model-check every preset with every protocol alone, and with every temporal policy.

What people may do meanwhile is in the environment: stop, abort, steer, follow up. Give a number to look at no more
states than that of each (default: a million). Exit code 0 when nothing is violated, else 1.
"""

import sys
from collections.abc import Iterator
from typing import Literal

from agent.presets.shipped import PRESETS
from agent.protocols.policies import eventually, never, no_more_than, only_after
from agent.verification.counterexample import tell
from agent.verification.environment import few_examples_for
from agent.verification.loop import loop_rules, verify_loop
from bp import BThread
from tests.agent.protocols.protocol_programs import PROGRAMS
from tests.agent.verification.verify_every_pair import verdict


def policies() -> Iterator[tuple[str, tuple[BThread, ...]]]:
    """Every temporal pattern, with everything that it may do instead of refusing."""
    choices: tuple[Literal["refuse", "ask", "stop"], ...] = ("refuse", "ask", "stop")
    for otherwise in choices:
        yield f"only_after ({otherwise})", (only_after("second", "first", otherwise=otherwise),)
        yield f"never ({otherwise})", (never("second", after="first", otherwise=otherwise),)
        yield f"no_more_than ({otherwise})", (no_more_than(1, "first", otherwise=otherwise),)
        if otherwise != "ask":
            yield f"eventually ({otherwise})", (eventually("second", after="first", otherwise=otherwise),)


def main(most: int) -> int:
    """Look at all of them; return the exit code."""
    code = 0
    for preset in PRESETS.values():
        rules = loop_rules(preset)
        for name, protocols in {**PROGRAMS, **dict(policies())}.items():
            examples = few_examples_for((*rules, *protocols))
            result = verify_loop(rules, protocols, examples=examples, max_states=most)
            print(
                f"{verdict(result):8}  {result.states:>9,} states, {result.seconds:6.1f} s: {preset.name}, {name}",
                flush=True,
            )
            for violation in result.violations:
                print(f"\n{tell(violation)}\n")
                code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
