"""Change the code of a room in small ways and list what no test notices: `make mutants ROOM=agent/threads`.

Every mutant is judged by four kinds of tests, each only where those before it noticed nothing: the quick tests of its
room, those of its package, the laws, and `verify`. What was found is kept in build/mutants, so that a run that was
interrupted goes on, for as long as no file of the project changes.
"""

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from random import Random

from attrs import astuple, define, evolve, field, frozen

from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.trials import (
    Oracle,
    Outcome,
    Recording,
    TrialError,
    Worker,
    copied,
    digest_of,
    files_of,
    is_among,
)

LAWS = {
    "agent": ("tests/agent/session/test_laws.py",),
    "bp": ("tests/bp/test_against_reference.py", "tests/bp/verification/test_verifier_law.py"),
    "constitution": ("tests/constitution/test_laws.py",),
}
EQUIVALENTS = Path("tests/mutants/equivalents.toml")
QUICK = ("-m", "not slow")
JUDGES = ("room", "package", "laws", "verify")


def oracles_for(room: str, root: Path) -> list[Oracle]:
    """Return the tests that judge a room, in the order in which they are asked."""
    package = room.partition("/")[0]
    oracles = [
        Oracle("room", QUICK, (f"tests/{room}",)),
        Oracle("package", QUICK, (f"tests/{package}",), besides=(f"tests/{room}",)),
        Oracle("laws", (), LAWS.get(package, ())),
        Oracle("verify", (), (f"tests/{package}/verification",)),
    ]
    there = [evolve(oracle, paths=tuple(path for path in oracle.paths if (root / path).exists())) for oracle in oracles]
    return [oracle for oracle in there if oracle.paths and oracle.paths != oracle.besides]


# Mutants


def all_mutants(root: Path, copy: Path, files: Iterable[str]) -> dict[str, list[Mutant]]:
    """Return the mutants of each file, in order."""
    return {path: list(mutants_of((root / path).read_text("utf-8"), path, str(copy / path))) for path in files}


@frozen
class Equivalent:
    """A mutant that no test can notice, and why."""

    file: str
    function: str
    change: str
    reason: str


def without_equivalents(root: Path, mutants: dict[str, list[Mutant]]) -> tuple[list[Mutant], int]:
    """Return the mutants that are no equivalents, and the number of the others. Raises TrialError for a stale entry."""
    listed = tomllib.loads((root / EQUIVALENTS).read_text("utf-8")) if (root / EQUIVALENTS).exists() else {}
    entries = [Equivalent(**entry) for entry in listed.get("equivalent", ())]
    keys = {(entry.file, entry.function, entry.change): entry for entry in entries}
    known = {mutant.key for each in mutants.values() for mutant in each}
    for key, entry in keys.items():
        if key not in known and (entry.file in mutants or not (root / entry.file).exists()):
            raise TrialError(f"{EQUIVALENTS}: no mutant is {entry.change!r} in {entry.function!r} of {entry.file!r}")
    left = [mutant for each in mutants.values() for mutant in each if mutant.key not in keys]
    return left, len(known & keys.keys())


def changed_lines(root: Path, base: str) -> dict[str, set[int]]:
    """Return the lines of each module that differ from the commit at which this branch left `base`."""
    git = ["git", "-C", str(root)]
    start = subprocess.run([*git, "merge-base", base, "HEAD"], capture_output=True, text=True).stdout.strip() or base
    diff = [*git, "diff", "--unified=0", "--no-color", start, "--", "*.py", ":!tests", ":!docs"]
    found: dict[str, set[int]] = {}
    path = ""
    for line in subprocess.run(diff, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    return {path: lines for path, lines in found.items() if (root / path).exists()}


# Judging them


@define
class Judgement:
    """What was found so far, and the workers that find the rest."""

    folder: Path
    copy: Path
    jobs: int
    found: dict[tuple[str, str], Outcome] = field(factory=dict)
    workers: list[Worker] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        if (results := self.folder / "results.jsonl").exists():
            for line in results.read_text("utf-8").split("\n")[:-1]:  # the last may be torn
                mutant, asked, *outcome = json.loads(line)
                self.found[mutant, asked] = Outcome(*outcome)

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()

    def judge(self, mutants: Sequence[Mutant], oracles: Sequence[Oracle], without: Sequence[str] = ()) -> None:
        """Have each oracle judge what those before it did not notice."""
        for oracle in oracles:
            asked = [mutant for mutant in mutants if not self.outcome(mutant, oracles, without).noticed_by]
            name = _named(oracle, without)
            if missing := [mutant for mutant in asked if (str(mutant), name) not in self.found]:
                recording = self.recording(oracle, missing[0].path.partition("/")[0])
                missing.sort(key=lambda mutant: len(recording.tests_for(mutant)))  # soon much is known
                self._ask(missing, oracle, recording, without)

    def outcome(self, mutant: Mutant, oracles: Sequence[Oracle], without: Sequence[str] = ()) -> Outcome:
        """Return what was found of a mutant, by the last oracle that had to be asked."""
        found = [self.found.get((str(mutant), _named(oracle, without))) for oracle in oracles]
        known = [outcome for outcome in found if outcome is not None and outcome.how != "not reached"]
        return known[-1] if known else Outcome("", how="not reached")

    def recording(self, oracle: Oracle, package: str) -> Recording:
        """Return what the tests of an oracle do without a mutant. Raises TrialError if one fails."""
        label = re.sub(r"\W+", "-", " ".join((oracle.name, *oracle.paths)))
        kept = self.folder / f"recorded-{label}"
        if not kept.exists():
            print(f"recording which lines the tests of {oracle.name!r} execute ...", file=sys.stderr)
            worker = Worker(self.folder / f"worker-{os.getpid()}", self.copy, may_write_copy=True)
            try:
                kept.write_bytes(pickle.dumps(worker.record(oracle, package)))
            finally:
                worker.close()
        recording: Recording = pickle.loads(kept.read_bytes())
        return recording

    def _ask(self, mutants: list[Mutant], oracle: Oracle, recording: Recording, without: Sequence[str]) -> None:
        self._start()
        idle = SimpleQueue[Worker]()
        for worker in self.workers:
            idle.put(worker)

        def judged(mutant: Mutant) -> tuple[Mutant, Outcome]:
            worker = idle.get()
            try:
                return mutant, worker.outcome(mutant, oracle, recording, without)
            finally:
                idle.put(worker)

        name = _named(oracle, without)
        with ThreadPoolExecutor(self.jobs) as pool, open(self.folder / "results.jsonl", "a", encoding="utf-8") as file:
            try:
                futures = [pool.submit(judged, mutant) for mutant in mutants]
                for number, future in enumerate(as_completed(futures), start=1):
                    mutant, outcome = future.result()
                    self.found[str(mutant), name] = outcome
                    file.write(f"{json.dumps([str(mutant), name, *astuple(outcome)])}\n")
                    file.flush()
                    _show(name, number, len(mutants))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def _start(self) -> None:
        while len(self.workers) < self.jobs:
            self.workers.append(Worker(self.folder / f"worker-{os.getpid()}-{len(self.workers)}", self.copy))


def _named(oracle: Oracle, without: Sequence[str]) -> str:
    return f"{oracle.name} without {' '.join(without)}" if without else oracle.name


def _show(name: str, number: int, total: int) -> None:
    is_live = sys.stderr.isatty()
    if is_live or number % 50 == 0 or number == total:
        print(f"{name}: {number} of {total}", end="\r" if is_live and number < total else "\n", file=sys.stderr)


# The command


def report(
    title: str, mutants: Sequence[Mutant], equivalents: int, judgement: Judgement, oracles: list[Oracle]
) -> None:
    """Print how many mutants were noticed by which tests, and those that were not."""
    outcomes = {mutant: judgement.outcome(mutant, oracles) for mutant in mutants}
    for how, words in (("not reached", "is executed by no test"), ("survived", "survives")):
        for mutant in mutants:
            if outcomes[mutant].how == how:
                print(f"{mutant}  [{words}]")
    hows = Counter(outcome.how for outcome in outcomes.values())
    noticed = Counter(outcome.oracle for outcome in outcomes.values() if outcome.noticed_by)
    by = ", ".join(f"{oracle.name} {noticed[oracle.name]}" for oracle in oracles)
    print(
        f"{title}: {len(mutants)} mutants, {noticed.total()} noticed ({by}; {hows['timeout']} of them by a timeout), "
        f"{hows['survived']} survive, {hows['not reached']} are executed by no test; "
        f"{equivalents} more are listed as equivalent"
    )


def report_without(
    tests: Sequence[str], mutants: Sequence[Mutant], judgement: Judgement, oracles: list[Oracle]
) -> None:
    """Print which mutants would survive without some tests: only what they noticed is judged again, by the others."""
    theirs = [mutant for mutant in mutants if is_among(judgement.outcome(mutant, oracles).noticed_by, tests)]
    judgement.judge(theirs, oracles, tests)
    alone = [mutant for mutant in theirs if not judgement.outcome(mutant, oracles, tests).noticed_by]
    for mutant in alone:
        print(f"{mutant}  [survives without {' '.join(tests)}]")
    print(f"{len(theirs)} mutants were noticed by {' '.join(tests)} first; without it {len(alone)} of them survive")


def run(options: argparse.Namespace, root: Path) -> None:
    """Judge the mutants of a room, or of what changed. Raises TrialError where the tests cannot judge."""
    files = files_of(root)
    folder = root / "build/mutants" / digest_of(root, files)
    judgement = Judgement(folder, copied(root, files, folder / "tree"), options.jobs)
    lines = {} if options.room else changed_lines(root, options.base)
    rooms = rooms_of(options.room, files, lines)
    if not rooms:
        raise TrialError(f"no module in {options.room!r}" if options.room else f"nothing differs from {options.base}")
    try:
        for room, modules in rooms.items():
            mutants, equivalents = without_equivalents(root, all_mutants(root, judgement.copy, modules))
            mutants = [each for each in mutants if not lines or not lines[each.path].isdisjoint(each.lines)]
            mutants = sampled(mutants, options.sample, options.seed)
            oracles = [oracle for oracle in oracles_for(room, root) if oracle.name in options.judges]
            judgement.judge(mutants, oracles)
            report(options.room or room, mutants, equivalents, judgement, oracles)
            if options.without:
                report_without(options.without, mutants, judgement, oracles)
    finally:
        judgement.close()


def rooms_of(room: str, files: Sequence[str], lines: dict[str, set[int]]) -> dict[str, list[str]]:
    """Return the modules to change, by the room whose tests come first."""
    room = room.rstrip("/")
    modules = [path for path in files if path.endswith(".py") and (is_among(path, [room]) if room else path in lines)]
    if room and not room.endswith(".py"):
        return {room: modules} if modules else {}
    rooms: dict[str, list[str]] = {}
    for path in modules:
        rooms.setdefault(str(Path(path).parent), []).append(path)
    return rooms


def sampled(mutants: list[Mutant], number: int | None, seed: int) -> list[Mutant]:
    """Return so many of the mutants, in order; the same for the same seed."""
    if number is None or number >= len(mutants):
        return mutants
    chosen = set(Random(seed).sample(range(len(mutants)), number))
    return [mutant for position, mutant in enumerate(mutants) if position in chosen]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, and return 2 where nothing could be judged."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", nargs="?", default="", help="a folder or module; without it what changed is judged")
    parser.add_argument("--base", default="main", help="the branch from which changes are counted (%(default)s)")
    parser.add_argument("--sample", type=int, help="judge only so many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="for --sample (%(default)s)")
    parser.add_argument("--judges", nargs="+", default=JUDGES, choices=JUDGES, help="(%(default)s)")
    parser.add_argument("--without", nargs="+", default=[], help="tests: say what would survive without them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (%(default)s)")
    try:
        run(parser.parse_args(arguments), Path.cwd())
    except TrialError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
