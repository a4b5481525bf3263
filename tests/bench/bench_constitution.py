"""Microseconds per judged command, the best of five times, over the corpora of the tests."""

import statistics
import time
from pathlib import Path

from constitution import judge_command

CORPORA = Path(__file__).parent.parent / "constitution" / "corpora"


def main() -> None:
    """Print the median, the 95th percentile and the maximum."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(CORPORA.glob("*.tsv"))]
    commands = [line.partition("\t")[2].replace("⏎", "\n") for text in texts for line in text.splitlines()]
    times = sorted(min(_microseconds(command) for _ in range(5)) for command in commands)
    print(
        f"median {statistics.median(times):.0f} µs, 95 % {times[int(len(times) * 0.95)]:.0f} µs, max {times[-1]:.0f} µs"
    )


def _microseconds(command: str) -> float:
    start = time.perf_counter()
    judge_command(command, "/ws", home="/home/me")
    return (time.perf_counter() - start) * 1e6


if __name__ == "__main__":
    main()
