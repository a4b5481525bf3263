"""How much faster this engine is than BPpy, where that is installed (`pip install bppy`), in the same run."""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tests.bench.hot_cold import hot_cold, row
from tests.bench.rows import Aim, Row
from tests.bench.timing import Prepare, fastest, scaled
from tests.bench.waiting import parked

__all__ = ["measure"]

WAITING = 1000


def measure(size: float = 1.0) -> Iterator[Row]:
    """Hot/cold alone, and with 1,000 b-threads that wait for something else."""
    if find_spec("bppy") is None:
        yield Row("BPpy, hot/cold", None, "µs/event", note="skipped: bppy is not installed")
        return
    times = scaled(1000, size)
    ours, theirs = fastest(hot_cold(times), bppy_hot_cold(times), rounds=3)
    yield row("BPpy, hot/cold", theirs, times, ours, "this engine", Aim(at_least=10, of="ratio"))
    times, waiting = scaled(50, size), scaled(WAITING, size)
    ours, theirs = fastest(hot_cold(times, *parked(waiting)), bppy_hot_cold(times, waiting))
    yield row(f"BPpy, {WAITING:,} waiting", theirs, times, ours, "this engine", Aim(at_least=1000, of="ratio"))


def bppy_hot_cold(times: int, waiting: int = 0) -> Prepare:
    """Prepare the same program in BPpy, with `waiting` b-threads that wait for events of their own."""
    bppy: Any = import_module("bppy")
    hot, cold = bppy.BEvent("hot"), bppy.BEvent("cold")

    @bppy.thread  # type: ignore[untyped-decorator, unused-ignore]
    def alternate() -> Any:
        while True:
            yield bppy.sync(waitFor=hot, block=cold)
            yield bppy.sync(waitFor=cold, block=hot)

    @bppy.thread  # type: ignore[untyped-decorator, unused-ignore]
    def add(what: Any) -> Any:
        for _ in range(times):
            yield bppy.sync(request=what)

    @bppy.thread  # type: ignore[untyped-decorator, unused-ignore]
    def wait_for_ever(what: Any) -> Any:
        yield bppy.sync(waitFor=what)

    def prepare() -> Callable[[], object]:
        others = [wait_for_ever(bppy.BEvent(f"never {number}")) for number in range(waiting)]
        program = bppy.BProgram(
            bthreads=[alternate(), add(hot), add(cold), *others],
            event_selection_strategy=bppy.SimpleEventSelectionStrategy(),
        )
        program.setup()  # untimed; `run` finds nothing left to set up
        run: Callable[[], object] = program.run
        return run

    return prepare
