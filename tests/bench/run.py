"""Measure everything, or the questions named: `make bench`, `python tests/bench/run.py turns --json figures.json`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from tests.bench.agent_costs import (
    measure_imports,
    measure_snapshots,
    measure_streaming,
    measure_tools,
    measure_turns,
)
from tests.bench.classics import measure_bppy
from tests.bench.engine import (
    measure_held,
    measure_hot_cold,
    measure_memory,
    measure_messages,
    measure_verification,
    measure_waiting,
)
from tests.bench.experiments import measure_cells, measure_experiments, measure_workers
from tests.bench.measuring import Row, as_plain, table

QUESTIONS: dict[str, Callable[[float], Iterator[Row]]] = {
    "hot_cold": measure_hot_cold,
    "messages": measure_messages,
    "waiting": measure_waiting,
    "held": measure_held,
    "peer": measure_bppy,
    "verify": measure_verification,
    "turns": measure_turns,
    "streaming": measure_streaming,
    "imports": measure_imports,
    "memory": measure_memory,
    "tools": measure_tools,
    "snapshots": measure_snapshots,
    "experiments": measure_experiments,
    "cells": measure_cells,
    "workers": measure_workers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write the figures where `--json` says. Missed aims do not fail the command."""
    options = _options(arguments)
    rows: dict[str, list[Row]] = {}
    for name in options.questions or QUESTIONS:
        begin = perf_counter()
        print(f"{name} ...", file=sys.stderr, end="", flush=True)
        rows[name] = list(QUESTIONS[name](options.size))
        print(f" {perf_counter() - begin:.1f} s", file=sys.stderr)
    print(table([row for found in rows.values() for row in found]))
    if options.json is not None:
        figures = {name: [as_plain(row) for row in found] for name, found in rows.items()}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", type=_question, metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    parser.add_argument("--size", type=float, default=1.0, help="a part of the usual size, for a quick look (0.1)")
    return parser.parse_args(arguments)


def _question(name: str) -> str:
    if name not in QUESTIONS:
        raise argparse.ArgumentTypeError(f"there is no question {name!r}; questions: {', '.join(QUESTIONS)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
