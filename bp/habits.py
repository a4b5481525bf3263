"""What a program does again and again, learned as an automaton: a step that was taken before needs no board.

The theory of operation. What happens next is decided by what all b-threads say at this moment, their *configuration*:
which event is first, who resumes on it, in which order. A program that goes round in circles passes the same
configurations again, so a *place* remembers one of them and the step from there, as it was found out the long way:

    place ── event, its requester; each who resumes, and the statement it is expected to answer with ──> next place

    all answer as expected       the program is at the next place; nothing was looked up, filed or judged
    another answer, seen before  the same, at another place: it becomes the expected one
    anything else                the answers are filed on the board, and the step goes on the long way (bp/program.py)

Statements are compared by identity, which is quick and exact: `sync` keeps those of plain words (`bp/statements.py`),
and an object that is said again asks for the same, whatever it is, since predicates are pure. Only steps whose answers
are kept ones are learned; others could not come again. A configuration is written down as the statements of those who
moved at all (`Habits.movers`); all others stand where they stood. So learning costs what moves, not what there is.

Nothing is learned about a step that starts, ends or interrupts a b-thread: then there are other b-threads, and all is
forgotten. Learning that does not pay is left alone for longer and longer times, so that it costs next to nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bp.board import Board, Running
from bp.events import Event
from bp.scheduler import answer
from bp.statements import Sync

__all__ = ["Habits", "Place"]

MOST_MOVERS = 256  # b-threads of one configuration
MOST_STATEMENTS = 100_000  # in all that is remembered together: some five megabytes
PATIENCE = 256  # steps that may be learned before known ones have to pay for them; doubled after each break
MOST_PATIENCE = 8192
BREAK = 32  # how many steps without learning follow for each that was learned in vain


class Place:
    """A configuration of a program, and the step from it, once that was taken.

    `said`: what the movers say here. `moves`: who resumes on `event`, as the `send` of its generator, and its
    expected answer; None while the step is unknown. `successors`: the moves and the next place, by answers.
    """

    __slots__ = ("bthread", "event", "moves", "next", "resumed", "said", "successors")

    def __init__(self, said: tuple[Sync, ...]) -> None:
        """Make a place without a step."""
        self.said = said
        self.moves: tuple[tuple[Callable[[Event], Any], Sync], ...] | None = None
        self.event: Any = None
        self.bthread = ""
        self.resumed: Sequence[Running] = ()
        self.next: Place | None = None
        self.successors: dict[tuple[int, ...], tuple[Any, Place]] = {}

    def learn(self, event: Event, bthread: str, resumed: Sequence[Running]) -> None:
        """Remember what happens here."""
        self.event, self.bthread, self.resumed = event, bthread, resumed

    def lead_to(self, place: "Place") -> None:
        """Remember that the answers that those who resumed now stand at lead to `place`; expect them from now on."""
        answers = [running.statement for running in self.resumed]
        self.moves = tuple([(running.send, answer) for running, answer in zip(self.resumed, answers, strict=True)])
        self.next = place
        self.successors[tuple(map(id, answers))] = (self.moves, place)  # `moves` keep them alive, so ids are names

    def turn(self, answers: Iterable[Any]) -> bool:
        """Expect other answers from now on; tell whether they were seen before."""
        found = self.successors.get(tuple(map(id, answers)))
        if found is None:
            return False
        self.moves, self.next = found
        return True


class Habits:
    """The places of one program, as far as they are known.

    Invariant: whoever moved since `movers` was last emptied is in it, and each place says where all of them stand.
    """

    def __init__(self, board: Board) -> None:
        """Begin without any; places are filed on `board`."""
        self._board = board
        self._movers: dict[Running, None] = {}
        self._places: dict[tuple[int, ...], Place] = {}
        self._size = 0  # statements in places and steps
        self._answers: list[Any] = []  # so far, in a step that goes on otherwise than expected
        self._crew = 0
        self._last = 0  # the number of the last step that was taken the long way
        self._patience = self._credit = PATIENCE
        self._break_until = 0

    def __del__(self) -> None:
        """Cut the circles of places, so that generators that nobody closed end with their program."""
        self.forget()

    def file(self, place: Place) -> None:
        """Put on the board what the movers say at `place`; inside the step from there, also what was answered since."""
        for running, statement in zip(self._movers, place.said, strict=True):
            self._board.file(running, statement)
        under_way = next((turn for turn, running in enumerate(place.resumed) if is_running(running.body)), 0)
        answers = self._answers or [expected for _, expected in place.moves or ()]
        for running, answered in zip(place.resumed[:under_way], answers, strict=False):
            self._board.file(running, answered)

    def hear_out(self, place: Place, send: Callable[[Event], Any], said: Any) -> list[Any]:
        """Return the answers in a step from `place` in which `said`, by the one with `send`, is the first unexpected.

        After an answer that is no statement, nobody is asked any more.
        """
        moves = place.moves or ()
        turn = [known for known, _ in moves].index(send)
        answers = self._answers = [*(expected for _, expected in moves[:turn]), said]
        try:
            for known, _ in moves[turn + 1 :]:
                if type(answers[-1]) is not Sync:
                    break
                answers.append(answer(known, place.event))
        finally:
            self._answers = []
        return answers

    def follow(self, number: int, resumed: Sequence[Running], crew: int) -> Place | None:
        """Return the place to which step `number` led, taken the long way; None where nothing can be learned.

        `crew` changes when a b-thread starts or ends.
        """
        if number < self._break_until or not self._pays(number):
            return None
        if crew != self._crew:
            self._crew = crew
            self.forget()
            return None
        return self._reach() if self._know(resumed) else None

    def _pays(self, number: int) -> bool:
        """Tell whether to go on learning: a step that was taken the long way costs one, a known one brings one."""
        known = number - self._last - 1
        self._last = number
        self._credit = min(self._credit + known, self._patience) - 1
        if self._credit >= 0 and len(self._movers) <= MOST_MOVERS:
            return True
        self._break_until = number + BREAK * self._patience
        self._last = self._break_until - 1
        self._credit = self._patience = min(2 * self._patience, MOST_PATIENCE)
        self.forget()
        return False

    def _know(self, resumed: Sequence[Running]) -> bool:
        """Count those who resumed among the movers; tell whether what they say now can come again."""
        kept = True
        for running in resumed:
            if not running.statement.kept:
                kept = False
            if running not in self._movers:
                self._cut()
                self._movers[running] = None
        return kept

    def _reach(self) -> Place:
        said = tuple([running.statement for running in self._movers])
        self._size += len(said) + 10
        if self._size > MOST_STATEMENTS:
            self._cut()
        look = tuple(map(id, said))
        place = self._places.get(look)
        if place is None:
            place = self._places[look] = Place(said)
        return place

    def forget(self) -> None:
        """Forget all places and movers."""
        self._cut()
        self._movers = {}

    def _cut(self) -> None:
        for place in self._places.values():
            place.next = None
            place.successors.clear()
        self._places = {}
        self._size = 0


def is_running(body: Any) -> bool:
    """Tell whether a generator is under way: somebody is asking from inside it."""
    return bool(getattr(body, "gi_running", False))
