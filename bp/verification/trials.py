"""Real runs of a program, in copies of the process as it was, to be followed in the model.

A copy is forked before anything has run, and waits for a job: runs by chance, and runs along given traces. It runs the
b-threads on the board and the scheduler of the engine, with another seed, a moved clock and another time zone; its
first run with their own arguments, the others with copies of them, in a process in which they have run before. A copy
runs b-threads only, leaves by `os._exit`, and is killed by its id when it does not answer in time: then it counts as
not run. A fresh interpreter, with other hashes, is one more copy where the program can be imported.
"""

import os
import pickle
import random
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bp.board import Board, Running
from bp.errors import shown
from bp.events import Event
from bp.program import Scheduler
from bp.replay import OutsideName, outside
from bp.statements import BThread, Sync
from bp.verification.looks import VerificationError, look_at, portable
from bp.verification.model import MOST_STARTS, SILENCE, chosen, copied, let_go

MOST_STEPS = 60  # of a run by chance
PATIENCE = 30.0  # seconds without any run after which a copy is killed
BEAT = b"."  # what a copy says after each run; no answer begins so
Key = Any  # what an event or a statement looks like to any process


class Program(NamedTuple):
    """The arguments of `verify` that a run needs."""

    bthreads: Sequence[BThread]
    environment: Sequence[BThread]
    possible: Sequence[Event]
    free: frozenset[str] | None = None


class Job(NamedTuple):
    """The task of a copy: one run for each seed, and one along each trace, within seconds."""

    seeds: Sequence[int]
    traces: Sequence[Sequence[Key]]
    seconds: float


class Step(NamedTuple):
    """One step, by numbers: the statements of all b-threads, the selectable events, and the one that happened."""

    standing: tuple[int, ...]
    selectable: tuple[int, ...]
    event: int | None


class Run(NamedTuple):
    """One run: its steps, and the b-thread that failed at its end, if any."""

    steps: tuple[Step, ...]
    failed: str


class Keys:
    """Numbers for statements (each with its b-thread) and events, by looks that any process understands."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.texts: list[str] = []
        self._known: dict[int, tuple[Any, Any]] = {}
        self._by_looks: dict[Any, int] = {}

    def of_key(self, key: Key, text: str = "") -> int:
        """Return the number of a key."""
        number = self.numbers.setdefault(key, len(self.numbers))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def of(self, value: Any, name: str = "") -> int:
        """Return the number of an event, or of the statement of the b-thread with this name."""
        looks = (name, look_at(self._known, value))
        number = self._by_looks.get(looks)
        if number is None:
            number = self._by_looks[looks] = self.of_key(portable(looks), name or shown(value))
        return number


# One run.


class Play:
    """A program at work on the engine's own board and scheduler; the environment is heard where it rests."""

    def __init__(self, program: Program, keys: Keys) -> None:
        self.program = program
        self.keys = keys
        self.board = Board()
        self.scheduler = Scheduler(self.board, MOST_STARTS * 10)
        self._numbers: dict[Running, tuple[Sync, int]] = {}

    def begin(self) -> None:
        """Begin all b-threads. Raises BThreadError and EndlessLoop."""
        self.scheduler.begin((*self.program.bthreads, *map(outside, self.program.environment)))

    def standing(self) -> tuple[int, ...]:
        """Return the numbers of the statements of all b-threads, in order."""
        return tuple(sorted(map(self._number, self.scheduler.living)))

    def _number(self, running: Running) -> int:
        statement, number = self._numbers.get(running, (None, -1))
        if statement is not running.statement:
            number = self.keys.of(running.statement, str(running.name))
            self._numbers[running] = (running.statement, number)
        return number

    def selectable(self) -> list[Event]:
        """Return what can be selected. Raises EventSetError."""
        self.board.update_alternatives()
        possible = self.program.possible
        return self._offered(is_outside=False) or [
            *self._offered(is_outside=True), *filter(self.board.is_free, possible)
        ]  # fmt: skip

    def _offered(self, *, is_outside: bool) -> list[Event]:
        requesters = [by for by in self.board.requesters if isinstance(by.name, OutsideName) is is_outside]
        offers = [(by.name, by.priority, self.board.offered_by(by)) for by in requesters]
        return chosen(offers, None if is_outside else self.program.free)

    def take(self, event: Event) -> None:
        """Make an event happen. Raises BThreadError and EndlessLoop."""
        self.scheduler.next_super_step()
        self.scheduler.event = event
        self.scheduler.advance(*self.board.concerned(event), event)

    def close(self) -> None:
        """Close all generators."""
        for running in self.scheduler.living:
            let_go(running.body)


def run(program: Program, keys: Keys, chance: random.Random, trace: Sequence[Key] = ()) -> Run:
    """Run a program along a trace as far as it goes, then by chance."""
    play, steps, wanted = Play(program, keys), list[Step](), [keys.of_key(key) for key in trace]
    failed = ""
    try:
        play.begin()
        while len(steps) < (len(trace) or MOST_STEPS):
            standing = play.standing()
            events = {keys.of(event): event for event in play.selectable()}
            number = wanted[len(steps)] if len(steps) < len(trace) else None
            if number not in events:
                number = chance.choice([*events]) if events else None
            steps.append(Step(standing, tuple(events), number))
            if number is None:
                break
            play.take(events[number])
    except VerificationError:
        raise
    except BaseException as error:  # of a b-thread, whatever it is
        failed = str(getattr(error, "bthread", type(error).__name__))
    finally:
        play.close()
    return Run(tuple(steps), failed)


def runs(program: Program, keys: Keys, job: Job) -> Iterator[Run]:
    """Run a program as often as a job says, the first time with its own arguments."""
    until, along = time.process_time() + job.seconds, [(0, trace) for trace in job.traces]
    by_chance, untouched = [(seed, ()) for seed in job.seeds], copy_of(program)
    for number, (seed, trace) in enumerate((*by_chance[:1], *along, *by_chance[1:])):
        if time.process_time() > until:
            return
        random.seed(seed)
        yield run(program if number == 0 else copy_of(untouched), keys, random.Random(seed), trace)


def copy_of(program: Program) -> Program:
    """Return a program whose b-threads have arguments of their own, shared as they were."""
    bthreads, count = copied(*program.bthreads, *program.environment), len(program.bthreads)
    return program._replace(bthreads=bthreads[:count], environment=bthreads[count:])


# Copies.


class Answer(NamedTuple):
    """The runs of a copy, and the keys and texts behind its numbers."""

    keys: Sequence[Key]
    texts: Sequence[str]
    runs: Sequence[Run]


def answer(program: Program, job: Job, beat: Callable[[], Any] = lambda: None) -> Answer:
    """Run a job in this process; `beat` is called after each run."""
    keys, found = Keys(), list[Run]()
    for each in runs(program, keys, job):
        found.append(each)
        beat()
    return Answer(tuple(keys.numbers), tuple(keys.texts), found)


class Copy(NamedTuple):
    """A process that waits for a job: its id, and where the job and its answer go."""

    pid: int
    jobs: int
    answers: int

    def send(self, job: Job) -> None:
        """Give it its job."""
        with suppress(OSError), open(self.jobs, "wb") as file:
            pickle.dump(job, file)

    def end(self) -> None:
        """Kill it by its id, unless it has ended."""
        for descriptor in (self.jobs, self.answers):
            with suppress(OSError):
                os.close(descriptor)
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)


def forked(program: Program, number: int, others: Sequence[Copy]) -> Copy | None:
    """Return a copy of this process, or None where there is no `fork`; `others`: earlier ones."""
    if not hasattr(os, "fork"):
        return None
    (job, to_job), (from_answer, to_answer) = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beside threads: the copy runs b-threads only
        pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (to_job, from_answer, *(each for copy in others for each in (copy.jobs, copy.answers))):
                with suppress(OSError):
                    os.close(descriptor)
            _move_clock(number)
            _serve(lambda: program, job, to_answer, os.getppid())
        finally:
            os._exit(0)
    os.close(job)
    os.close(to_answer)
    return Copy(pid, to_job, from_answer)


def fresh(program: Program) -> Copy | None:
    """Return a fresh interpreter with other hashes; None if it cannot import the program."""
    try:
        data = pickle.dumps(program)
    except Exception:  # such as a local function
        return None
    if b"__main__" in data or not sys.executable or not hasattr(os, "posix_spawn"):
        return None
    path = os.pathsep.join([os.getcwd() if each == "" else each for each in sys.path])
    (job, to_job), (from_answer, to_answer) = os.pipe(), os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", "from bp.verification.trials import serve; serve()"],
        {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "20"},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, job, 0),
            (os.POSIX_SPAWN_DUP2, to_answer, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
    )
    os.close(job)
    os.close(to_answer)
    with suppress(OSError):
        os.write(to_job, data)
    return Copy(pid, to_job, from_answer)


def serve() -> None:
    """Take a program and a job from the standard input, and answer on the standard output."""
    source, target = os.dup(0), os.dup(1)

    def program() -> Program:
        with open(source, "rb", buffering=0, closefd=False) as file:
            found: Program = pickle.load(file)
        return found

    _serve(program, source, target, os.getppid())


def _serve(program: Callable[[], Program], source: int, target: int, parent: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.stdout = sys.stderr = SILENCE
    known = program()
    while not select.select([source], [], [], 1.0)[0]:
        if os.getppid() != parent:
            return
    with open(source, "rb") as file:
        job = pickle.load(file)
    with open(target, "wb") as file:
        pickle.dump(answer(known, job, lambda: os.write(target, BEAT)), file)


def _move_clock(days: int) -> None:
    for name, unit in (("time", 1), ("monotonic", 1), ("perf_counter", 1), ("time_ns", 10**9), ("monotonic_ns", 10**9)):
        now, later = getattr(time, name), days * 86_461 * unit
        setattr(time, name, lambda now=now, later=later: now() + later)
    os.environ["TZ"] = f"UTC{days * 5 % 24 - 12:+d}"
    time.tzset()


def collected(copies: Sequence[Copy], patience: float) -> Iterator[Answer]:
    """Yield the answers of copies, until none has said anything for seconds; then all of them have ended."""
    data: dict[int, bytes] = {copy.answers: b"" for copy in copies}
    waiting = set(data)
    while waiting and (ready := select.select([*waiting], [], [], patience)[0]):
        for descriptor in ready:
            part = os.read(descriptor, 1 << 20)
            data[descriptor] += part
            if not part:
                waiting.remove(descriptor)
    for copy in copies:
        copy.end()
        with suppress(EOFError, pickle.UnpicklingError):
            yield pickle.loads(data[copy.answers].lstrip(BEAT))
