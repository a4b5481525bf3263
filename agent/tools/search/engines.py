"""Find the lines of open files that match: by `rg` where it is installed, else by Python in a process of its own.

Neither sees a path: both get descriptors of files that were opened within bounds. A process can be killed, so that a
pattern that takes for ever takes until its time is up.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from agent.tools.environment import tool_environment
from agent.tools.errors import ToolError
from agent.tools.process import Finished, run_process
from agent.tools.search.patterns import Engine, Pattern

__all__ = ["LineSearch", "best_engine"]

_OUTPUT_LIMIT = 16 << 20  # bytes; a line of output has about twelve
_FINDER = str(Path(__file__).with_name("line_finder.py"))


@frozen
class LineSearch:
    """What is looked for, by which engine, for how many seconds at most."""

    pattern: Pattern
    engine: Engine
    ignore_case: bool = False
    timeout: float = 60.0

    async def run(self, descriptors: Sequence[int], most: int) -> dict[int, list[int]]:
        """Return the numbers of matching lines (the first is 1) for each descriptor, at most `most` in each.

        Raises ToolError for a pattern that the engine does not take, or one that takes too long.
        """
        argv = self._rg(descriptors, most) if self.engine == "rg" else self._python(descriptors, most)
        finished = await run_process(
            argv,
            cwd="/",
            env={**tool_environment(), "PYTHONUTF8": "1"},
            timeout=self.timeout,
            output_limit=_OUTPUT_LIMIT,
            pass_fds=descriptors,
        )
        self._check(finished)
        return _numbers(finished.output.splitlines())

    def _rg(self, descriptors: Iterable[int], most: int) -> list[str]:
        case = "--ignore-case" if self.ignore_case else "--case-sensitive"
        options = "--no-config --color=never --no-ignore --no-messages --text --encoding=none"
        output = (
            "--line-number --with-filename --null --no-heading --max-columns=1"  # the lines themselves are left out
        )
        paths = [f"/dev/fd/{descriptor}" for descriptor in descriptors]
        rg = shutil.which("rg") or "rg"
        return [rg, *options.split(), *output.split(), case, f"--max-count={most}", "-e", self.pattern.rg, "--", *paths]

    def _python(self, descriptors: Iterable[int], most: int) -> list[str]:
        flags = "i" if self.ignore_case else "-"
        numbers = [str(descriptor) for descriptor in descriptors]
        return [sys.executable, "-I", "-S", _FINDER, self.pattern.python, flags, str(most), *numbers]

    def _check(self, finished: Finished) -> None:
        if finished.timed_out:
            raise ToolError(
                f"the search took longer than {self.timeout:g} seconds; use a simpler pattern or fewer files"
            )
        failed = finished.exit_code not in (0, 1) if self.engine == "rg" else finished.exit_code != 0
        if failed:
            raise ToolError(f"the search failed: {finished.output[-500:].strip() or finished}")


def best_engine() -> Engine:
    """Return "rg" where that program is on PATH, else "python"."""
    return "rg" if shutil.which("rg") and os.path.isdir("/dev/fd") else "python"


def _numbers(lines: Iterable[str]) -> dict[int, list[int]]:
    found: dict[int, dict[int, None]] = {}
    for descriptor, number in _pairs(lines):
        found.setdefault(descriptor, {})[number] = None
    return {descriptor: list(numbers) for descriptor, numbers in found.items()}


def _pairs(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    for line in lines:
        name, _, rest = line.removeprefix("/dev/fd/").partition("\0")
        number = rest.partition(":")[0]
        if name.isdigit() and number.isdigit():
            yield int(name), int(number)
