"""`make verified`: model-check the loop with each protocol of `docs/results/plan.yaml`, and write down the states.

Give a file to write, and the most states to look at of each (default: 300,000). Exit code 0 when nothing is violated.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from agent.lab.experiments.plan_file import load_plan
from agent.verification import verify_loop
from agent.verification.environment import FEW_EXAMPLES
from bp import BThread
from tests.agent.protocols.protocol_programs import IN_PAIRS, PROGRAMS, rules_named
from tests.agent.verification.verify_every_loop import verdict

PLAN = Path("docs/results/plan.yaml")
MOST = 300_000


def programs() -> Iterator[tuple[str, tuple[BThread, ...], bool]]:
    """What each row of the plan consists of, its name, and whether it is one protocol alone."""
    for used in dict.fromkeys(protocol.use for protocol in load_plan(PLAN).protocols if protocol.use):
        name = "+".join(used)
        if used[-1] in PROGRAMS and (len(used) == 1 or used == ("trusted_monitoring", "audit_budget")):
            yield name, PROGRAMS[used[-1]], True
        else:
            yield name, tuple(dict.fromkeys(bthread for each in used for bthread in IN_PAIRS[each])), False


def main(path: Path, most: int) -> int:
    """Look at all of them; return the exit code."""
    lines, code = [], 0
    for name, program, alone in programs():
        rules = rules_named("abort_on_request", *(["retry"] if alone else []))
        result = verify_loop(rules, program, examples=None if alone else FEW_EXAMPLES, max_states=most)
        lines.append((name, verdict(result), result.states, round(result.seconds, 1)))
        print(*lines[-1], flush=True)
        code = max(code, int(bool(result.violations)))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("protocols", "verdict", "states", "seconds"), *lines])
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else MOST))
