"""What verification costs: dining philosophers, the states a second, the bytes for each state, and what reducing saves.

python tests/bench/bench_verify.py 7 8 9 10
"""

import sys
import time
import tracemalloc

from bp import verify
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.states import StateSpace
from tests.bp.philosophers import philosophers


def search(n: int) -> Search:
    """Explore the table of n philosophers."""
    space = StateSpace(philosophers(n), (), (), in_order=False)
    found = Search(space, Violations(space, []))
    found.run()
    space.automaton.close()
    return found


def measure(n: int) -> None:
    """Print what n philosophers cost."""
    began = time.process_time()
    found = search(n)
    seconds = time.process_time() - began
    states, edges = len(found.states), len(found.targets)
    tracemalloc.start()
    kept = search(min(n, 8))
    size = tracemalloc.get_traced_memory()[0] / len(kept.states)
    tracemalloc.stop()
    print(f"{n:>3} philosophers: {states:>8,} states, {edges:>9,} steps, {seconds:6.2f} s of processor time, "
          f"{states / seconds:>8,.0f} states/s, {size:4.0f} bytes a state")  # fmt: skip

    began = time.process_time()
    reduced = verify(*philosophers(n), reduce=True)
    print(f"{'':>3} reduced:      {reduced.states:>8,} states, {reduced.transitions:>9,} steps, "
          f"{time.process_time() - began:6.2f} s of processor time")  # fmt: skip


if __name__ == "__main__":
    for argument in sys.argv[1:] or ("6", "8"):
        measure(int(argument))
