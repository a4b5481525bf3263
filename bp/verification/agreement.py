"""Real runs followed in the model: where they disagree, a b-thread is not a function of its events."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import frozen

from bp.errors import shown
from bp.events import Event
from bp.verification.looks import VerificationError
from bp.verification.model import Choice, Failure, Model, State
from bp.verification.report import few
from bp.verification.search import Search, way
from bp.verification.trials import (
    PATIENCE,
    Answer,
    Copy,
    Job,
    Keys,
    Program,
    Run,
    answer,
    collected,
    copy_of,
    forked,
    fresh,
)

COPIES = 8
BEFORE, AFTER = 0.5, 8.0  # seconds of CPU time for runs in each copy, before and after the search
NEAR = 30  # states among which the next move is looked for that no run has made
TOURS = 40_000  # steps of all tours together
AT_LEAST = 0.75  # of the moves; see docs/verification.md
Moving = tuple[int, int]  # a local state and an event


@frozen
class Agreement:
    """The share of a model that real runs agree with: the moves of b-threads that they made, and pairs of moves."""

    runs: int = 0
    steps: int = 0
    moves: tuple[int, int] = (0, 0)
    pairs: tuple[int, int] = (0, 0)

    @property
    def suffices(self) -> bool:
        """True if the program ran, and at least three of four moves were made."""
        made, of = self.moves
        return self.runs > 0 and made >= AT_LEAST * of

    def __str__(self) -> str:
        moves, pairs = (made / of if of else 1.0 for made, of in (self.moves, self.pairs))
        share = f"{100 * moves:.0f} % of the moves, {100 * pairs:.0f} % of their pairs"
        return f"agreed: {self.runs:,} runs, {self.steps:,} steps, {share}"


class Trials:
    """Copies of this process as it is now, and what their runs agree with. `runs`: by chance, in all copies."""

    model: Model

    def __init__(self, program: Program, runs: int) -> None:
        self.program = program
        self.count = 0
        self.steps = 0
        self.made: set[Moving] = set()
        self.pairs: set[tuple[Moving, Moving]] = set()
        self._keys = Keys()
        self._standing: dict[State, tuple[int, ...]] = {}
        self._choices: dict[State, dict[int, Choice]] = {}
        self._statements: dict[int, int] = {}  # the numbers of keys, by local state
        self._each = -(-runs // COPIES)
        self._copies: list[Copy] = []
        self._fresh: list[Copy] = []
        for number in range(min(COPIES, runs)):
            copy = forked(program, number, self._copies)
            self._copies += [] if copy is None else [copy]
        if runs >= COPIES and (copy := fresh(program)):
            self._fresh = [copy]
            copy.send(self._job(COPIES))

    def close(self) -> None:
        """End all copies."""
        for copy in (*self._copies, *self._fresh):
            copy.end()
        self._copies, self._fresh = [], []

    def before(self, model: Model) -> None:
        """Follow the runs of half of the copies. Raises VerificationError."""
        self.model = model
        self._follow_all(self._copies[::2], (), BEFORE)

    def after(self, search: Search) -> None:
        """Follow the runs of the others, along each violation and to the moves that none has made, and runs here."""
        traces = [(*each.trace, *each.cycle) for each in search.violations.found.values()]
        keys = [self._as_keys(trace) for trace in (*traces, *self._tours(search))]
        self._follow_all(self._copies[1::2], keys, AFTER)
        for each in collected(self._fresh, PATIENCE):
            self._follow_answer(each)
        if self._each:
            here = Job(range(7), () if self._copies[1:] else keys, BEFORE if self._copies[1:] else AFTER)
            self._follow_answer(answer(copy_of(self.program), here))

    def agreement(self, model: Model) -> Agreement:
        """Return what the runs agree with."""
        every = enumerate(model.locals)
        moves = {(number, event): move for number, local in every for event, move in local.moves.items()}
        leaving: dict[int, int] = {}
        for number, _ in moves:
            leaving[number] = leaving.get(number, 0) + 1
        pairs = sum(leaving.get(move.after, 0) for move in moves.values() if move.after is not None)
        made = len(self.made.intersection(moves))
        return Agreement(self.count, self.steps, (made, len(moves)), (len(self.pairs), pairs))

    def _job(self, copy: int, traces: Sequence[Any] = (), seconds: float = BEFORE) -> Job:
        return Job(tuple(range(copy * self._each, (copy + 1) * self._each)), tuple(traces), seconds)

    def _follow_all(self, copies: Sequence[Copy], traces: Sequence[Any], seconds: float) -> None:
        for number, copy in enumerate(copies):
            copy.send(self._job(self._copies.index(copy), traces[number :: len(copies)], seconds))
        for each in collected(copies, PATIENCE):
            self._follow_answer(each)

    def _as_keys(self, trace: Iterable[Event]) -> tuple[Any, ...]:
        every = list(self._keys.numbers)
        numbers = [self._keys.of(event) for event in trace]
        every = every if len(every) == len(self._keys.numbers) else list(self._keys.numbers)
        return tuple(every[number] for number in numbers)

    # Following.

    def _follow_answer(self, answer: Answer) -> None:
        ours = [self._keys.of_key(key, text) for key, text in zip(answer.keys, answer.texts, strict=True)]
        for run in answer.runs:
            self._follow(run, ours)
            self.count += 1
            self.steps += sum(step.event is not None for step in run.steps)

    def _follow(self, run: Run, ours: Sequence[int]) -> None:
        """Follow one run. Raises VerificationError where it is not as the model says."""
        members: list[tuple[int, Any]] = [(local, None) for local in self.model.initial]
        failing = [failure.name for failure in self.model.failures]
        trace: list[Event] = []
        for number, step in enumerate(run.steps, start=1):
            state = tuple(sorted([local for local, _ in members]))
            standing, selectable = ([ours[each] for each in them] for them in (step.standing, step.selectable))
            self._compare(number, state, standing, set(selectable))
            if step.event is None:
                break
            choice = self._choices[state][ours[step.event]]
            trace.append(self.model.events[choice.event])
            failing = [failure.name for failure in self.model.failures_on(state, choice).values()]
            if failing:
                break
            members = [after for member in members for after in self._moved(member, choice)]
        else:
            failing = failing or self._failing_at(tuple(sorted([local for local, _ in members])), run)
        if bool(failing) != bool(run.failed):
            failed = run.failed or "none"
            raise disagreement(f"after {few(map(shown, trace))}: failed is {failed}, expected {few(failing) or 'none'}")

    def _failing_at(self, state: State, run: Run) -> list[str]:
        """Return the b-thread whose predicate fails in a state, if a run ended there."""
        try:
            if run.failed:
                self.model.choices(state)
        except Failure as failure:
            return [failure.name]
        return []

    def _compare(self, number: int, state: State, standing: list[int], selectable: set[int]) -> None:
        expected = self._choices_in(state)
        if selectable != expected.keys():
            texts = [few(self._keys.texts[each] for each in sorted(them)) or "none" for them in (selectable, expected)]
            raise disagreement(f"step {number}: selectable are {texts[0]}, expected {texts[1]}")
        if tuple(sorted(standing)) != (where := self._standing_in(state)):
            names = few(dict.fromkeys(self._keys.texts[each] for each in {*standing}.symmetric_difference(where)))
            raise disagreement(f"step {number}: {names} stand elsewhere than expected")

    def _choices_in(self, state: State) -> dict[int, Choice]:
        if state not in self._choices:
            try:
                choices = self.model.choices(state)
            except Failure:
                choices = ()
            self._choices[state] = {self._keys.of(self.model.events[choice.event]): choice for choice in choices}
        return self._choices[state]

    def _standing_in(self, state: State) -> tuple[int, ...]:
        if state not in self._standing:
            self._standing[state] = tuple(sorted(map(self._said_by, state)))
        return self._standing[state]

    def _said_by(self, number: int) -> int:
        if number not in self._statements:
            local = self.model.locals[number]
            self._statements[number] = self._keys.of(local.statement, local.name)
        return self._statements[number]

    def _moved(self, member: tuple[int, Any], choice: Choice) -> Iterator[tuple[int, Any]]:
        """Yield where a b-thread goes, and those that it starts; note its move."""
        local, last = member
        if not self.model.is_concerned(local, choice):
            yield member
            return
        made = (local, choice.event)
        self.made.add(made)
        if last is not None:
            self.pairs.add((last, made))
        move = self.model.move(*made)
        if move.after is not None:
            yield move.after, made
        yield from ((started, None) for started in move.started)

    # What chance left out.

    def _tours(self, search: Search) -> Iterator[tuple[Event, ...]]:
        """Yield traces to moves that no run has made, each as long as it leads from one of them to the next."""
        missing: dict[int, set[int]] = {}  # by event: local states
        for number, local in enumerate(self.model.locals):
            for event in local.moves:
                if (number, event) not in self.made:
                    missing.setdefault(event, set()).add(number)

        def is_missing(number: int, _: int, label: int) -> bool:
            return not missing.get(search.choices[label].event, set()).isdisjoint(search.states[number])

        left = TOURS
        for number in range(len(search.states) if missing else 0):
            while left > 0 and any(is_missing(number, *step) for step in search.steps(number)):
                tour = (*search.path(number), *self._tour(search, number, missing, is_missing))
                left -= len(tour)
                yield tour

    def _tour(
        self, search: Search, number: int, missing: dict[int, set[int]], is_missing: Callable[[int, int, int], bool]
    ) -> Iterator[Event]:
        """Yield the events of a way through missing moves, each near the one before."""
        while labels := way(number, search.steps, is_missing, NEAR)[0]:
            for label in labels:
                event = search.choices[label].event
                missing.get(event, set()).difference_update(search.states[number])
                yield self.model.events[event]
                number = next(target for target, other in search.steps(number) if other == label)


def disagreement(found: str) -> VerificationError:
    """Return the error of a run that is not as the model says."""
    return VerificationError(
        f"not a function of its events: {found}; a real run and the model differ: some b-thread decides on what is in "
        "no local variable or argument of its own (a global, the clock, chance, an object that it shares); keep it "
        "there, or wait for an event that carries it"
    )
