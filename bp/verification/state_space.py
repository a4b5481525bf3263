"""The global states of a program, and the steps between them.

A global state is a text: one character for each living b-thread, whose code point numbers its local state. With
`order="any"` it is a multiset: b-threads of one name and priority stand together, sorted. With `order="run"` it
stands by age. A step replaces the characters of those whom its event concerns; which ones by what is found out once
for each event and each set of concerned local states.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bp.events import Event
from bp.statements import BThread
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import MOST_LOCALS, Automaton, LocalFailure, Move
from bp.verification.masks import Masks, bits
from bp.verification.selection import Choice, Selection

__all__ = ["StateSpace"]


class Replacement(NamedTuple):
    """What an event does to some local states: `pairs` of characters to replace, one after the other.

    `pairs` is None where one would replace what another has put there; then `table` does it all at once. `starts`:
    somebody starts b-threads. `moves` has the details.
    """

    pairs: tuple[tuple[str, str], ...] | None
    table: dict[int, str]
    starts: bool
    moves: dict[int, Move]


class Places(dict[str, int]):
    """Where the characters of local states stand in a sorted state: with those of their name and priority."""

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self._automaton = automaton
        self._sorts: dict[tuple[str, int, bool], int] = {}

    def __missing__(self, character: str) -> int:
        local = self._automaton.locals[ord(character)]
        sort = self._sorts.setdefault((local.name, local.priority, local.environment), len(self._sorts))
        place = self[character] = sort * MOST_LOCALS + ord(character)
        return place


class Begun(NamedTuple):
    """A b-thread that the program was given, and the local states at which it and those whom it starts stand first."""

    bthread: BThread
    environment: bool
    generations: tuple[tuple[int, ...], ...]


class StateSpace:
    """The states of one program with its environment."""

    def __init__(
        self, bthreads: Sequence[BThread], environment: Sequence[BThread], possible: Iterable[Event], in_order: bool
    ) -> None:
        """Make the space. Raises VerificationError; b-threads that fail at their start are in `failures`."""
        self.automaton = Automaton()
        self.masks = Masks(self.automaton)
        self.selection = Selection(self.masks, possible, in_order)
        self.failures: list[LocalFailure] = []
        self.begun: list[Begun] = []
        self.advanced: dict[int, int] = {}  # by event that was followed: all local states that it concerned (a mask)
        self._in_order = in_order
        self._places = Places(self.automaton)
        self._replacements: defaultdict[int, dict[int, Replacement]] = defaultdict(dict)  # by event, by concerned
        self._twins = True  # whether two b-threads of one name and priority can be there at once
        try:
            self.initial = self._begin(bthreads, environment)
        except VerificationError:
            self.automaton.close()
            raise

    def _begin(self, bthreads: Sequence[BThread], environment: Sequence[BThread]) -> str:
        """Return the state in which everybody has come to a first synchronization point."""
        started = [self._begun(bthread, False) for bthread in bthreads]
        promised = [self._begun(bthread, True) for bthread in environment]
        initial = self._joined("", (*started, *promised))
        self._twins = len({self._places[character] // MOST_LOCALS for character in initial}) < len(initial)
        return initial

    def _begun(self, bthread: BThread, environment: bool) -> tuple[tuple[int, ...], ...]:
        try:
            generations = self.automaton.begin([(bthread, 0)], environment=environment)
        except LocalFailure as failure:
            self.failures.append(failure)
            return ()
        self.begun.append(Begun(bthread, environment, generations))
        return generations

    def started(self) -> set[int]:
        """Return the local states at which b-threads were started on the events that were followed so far."""
        replacements = [found for known in self._replacements.values() for found in known.values() if found.starts]
        moves = [move for replacement in replacements for move in replacement.moves.values()]
        return {local for move in moves for generation in move.started for local in generation}

    def successor(self, state: str, present: int, choice: Choice) -> str:
        """Return the state after an event. Raises LocalFailure when a b-thread fails on it."""
        concerned = self.masks.advancing(choice.event, present) | choice.advancing
        known = self._replacements[choice.event]
        pairs, table, starts, moves = known.get(concerned) or self._replacement(known, choice.event, concerned)
        if pairs is None:
            after = state.translate(table)
        else:
            after = state
            for old, new in pairs:
                after = after.replace(old, new)
        if starts:
            self._twins = True
            return self._joined(after, self._started(state, moves))
        return after if self._in_order or not self._twins else self._sorted(after)

    def _replacement(self, known: dict[int, Replacement], event: int, concerned: int) -> Replacement:
        self.advanced[event] = self.advanced.get(event, 0) | concerned
        moves = {local: self.automaton.move(local, self.masks.events[event], event) for local in bits(concerned)}
        table = {local: "" if move.local is None else chr(move.local) for local, move in moves.items()}
        table = {local: new for local, new in table.items() if new != chr(local)}
        collide = any(new and ord(new) in table for new in table.values())
        pairs = None if collide else tuple((chr(old), new) for old, new in table.items())
        found = Replacement(pairs, table, any(move.started for move in moves.values()), moves)
        known[concerned] = found
        return found

    def _started(self, state: str, moves: dict[int, Move]) -> list[tuple[tuple[int, ...], ...]]:
        """Return whom the members of a state start, in the order in which they resume: by priority, then by age."""
        concerned = [local for local in map(ord, state) if local in moves]
        if self._in_order:
            concerned.sort(key=lambda local: -self.automaton.locals[local].priority)
        return [moves[local].started for local in concerned]

    def _joined(self, kept: str, groups: Sequence[tuple[tuple[int, ...], ...]]) -> str:
        """Add started b-threads to those kept: generation by generation, in the order of their starters."""
        deepest = max((len(generations) for generations in groups), default=0)
        new = "".join(
            chr(local)
            for depth in range(deepest)
            for generations in groups
            if depth < len(generations)
            for local in generations[depth]
        )
        return kept + new if self._in_order else self._sorted(kept + new)

    def _sorted(self, state: str) -> str:
        return "".join(sorted(state, key=self._places.__getitem__))

    # What a state says to those who ask.

    def advances(self, local: int, choice: Choice) -> bool:
        """Tell whether an event concerns a local state."""
        return bool((self.masks.advancing(choice.event, 1 << local) | choice.advancing) >> local & 1)

    def place_after(self, local: int, choice: Choice) -> int | None:
        """Return where the b-thread at a local state is after an event; None at its end. Raises LocalFailure."""
        if not self.advances(local, choice):
            return local
        return self.automaton.move(local, self.masks.events[choice.event], choice.event).local

    def is_hot(self, local: int) -> bool:
        """Tell whether the b-thread must not stay at this local state."""
        return self.automaton.locals[local].statement.hot

    def blockers(self, state: str, event: Event) -> tuple[tuple[str, Any], ...]:
        """Return who blocks or refuses an event in a state, and why."""
        number = self.masks.number(event)
        found = []
        for local in map(ord, state):
            known = self.automaton.locals[local]
            if self.masks.refuses[local] >> number & 1:
                found.append((known.name, known.statement.because))
            elif self.masks.blocks[local] >> number & 1:
                found.append((known.name, None))
        return tuple(dict.fromkeys(found))
