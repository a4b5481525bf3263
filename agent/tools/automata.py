"""Compare a whole text with a regular expression in time linear in the text, whatever the expression.

`re` goes back and tries again: `(a+)+b` takes for ever on forty characters, and everything stands still. Here all ways
through the expression are followed at once. What cannot be followed so (look-around, back references) is refused
when the expression is read.

An expression becomes a program of steps. A state is the set of steps that one can be at; where each character leads
is worked out once and remembered.
"""

import re
from collections.abc import Iterator

from attrs import define, field, frozen

from agent.tools.expressions import Anchor, Expression, Place, Repeat, Sequence, Sign, read_expression

_MOST_STEPS = 10_000  # of a program
_MOST_WORK = 1_000_000  # steps that are looked at for one text, where nothing is remembered of them: half a second
_MOST_REMEMBERED = 50_000  # characters that are known to lead somewhere


@frozen
class _Step:
    """One step: a sign that is read, a condition, or ways to go on (none: the end)."""

    sign: "re.Pattern[str] | None" = None
    anchor: Anchor | None = None
    ways: tuple[int, ...] = ()


@define(eq=False)
class _State:
    """Where one can be after some characters; `before` is what kind the last one was."""

    steps: frozenset[int]
    before: Place
    after: dict[str, "_State"] = field(factory=dict)


@define(eq=False)
class _Known:
    """What was worked out so far."""

    states: dict[tuple[frozenset[int], Place], _State] = field(factory=dict)
    remembered: int = 0


@frozen
class TextPattern:
    """A regular expression that a whole text has to match. Raises ValueError for one that is wrong or refused.

    The syntax is that of `re`, in which \\d, \\w, \\s and \\b mean ASCII; ^ and $ are the ends of the text.
    """

    pattern: str
    _program: tuple[_Step, ...] = field(init=False, repr=False, eq=False)
    _known: _Known = field(init=False, repr=False, eq=False, factory=_Known)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_program", _compile(read_expression(self.pattern)))

    def matches(self, text: str) -> bool | None:
        """Tell whether the whole text matches; None if that takes too long to find out."""
        state, work = self._state(frozenset({0}), "edge"), 0
        for sign in text:
            following = state.after.get(sign)
            if following is None:
                ready = self._ready(state, sign)
                work += len(ready)
                if work > _MOST_WORK:
                    return None
                following = self._follow(state, ready, sign)
            if not following.steps:
                return False
            state = following
        return len(self._program) - 1 in self._ready(state, None)

    def _state(self, steps: frozenset[int], before: Place) -> _State:
        return self._known.states.setdefault((steps, before), _State(steps, before))

    def _follow(self, state: _State, ready: set[int], sign: str) -> _State:
        """Return the state after `sign`, and remember it."""
        read = ((number, self._program[number].sign) for number in ready)
        steps = frozenset(number + 1 for number, wanted in read if wanted is not None and wanted.fullmatch(sign))
        if self._known.remembered >= _MOST_REMEMBERED:
            self._known.states.clear()
            self._known.remembered = 0
        following = self._state(steps, _place(sign))
        state.after[sign] = following
        self._known.remembered += 1
        return following

    def _ready(self, state: _State, sign: str | None) -> set[int]:
        """Return the steps that can be reached without reading, `sign` being the next one to read."""
        here, reached, waiting = (state.before, _place(sign)), set[int](), list(state.steps)
        while waiting:
            number = waiting.pop()
            if number not in reached:
                reached.add(number)
                step = self._program[number]
                if step.anchor is None or step.anchor.holds(*here):
                    waiting.extend(step.ways)
        return reached


def _place(sign: str | None) -> Place:
    if sign is None:
        return "edge"
    return "word" if sign == "_" or (sign.isascii() and sign.isalnum()) else "other"


def _compile(expression: Expression) -> tuple[_Step, ...]:
    writer = _Writer()
    writer.write(expression)
    return (*writer.steps, _Step())


class _Writer:
    """Writes the steps of an expression one after the other; each leads to the next, unless it says otherwise."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self._written = 0

    def write(self, expression: Expression) -> None:
        self._written += 1
        if self._written > _MOST_STEPS:
            raise ValueError(f"the pattern is too large: written out it has more than {_MOST_STEPS} steps; repeat less")
        match expression:
            case Sign():
                self.steps.append(_Step(sign=expression.pattern))
            case Anchor():
                self.steps.append(_Step(anchor=expression, ways=(len(self.steps) + 1,)))
            case Sequence():
                for part in expression.parts:
                    self.write(part)
            case Repeat():
                self._repeat(expression)
            case _:
                self._choose(expression.options)

    def _choose(self, options: tuple[Expression, ...]) -> None:
        ends = []
        for option in options[:-1]:
            fork = self._gap()
            self.write(option)
            ends.append(self._gap())
            self._fill(fork, fork + 1, len(self.steps))
        self.write(options[-1])
        for end in ends:
            self._fill(end, len(self.steps))

    def _repeat(self, repeat: Repeat) -> None:
        for _ in range(repeat.least):
            self.write(repeat.part)
        if repeat.most is None:
            fork = self._gap()
            self.write(repeat.part)
            self._fill(self._gap(), fork)
            self._fill(fork, fork + 1, len(self.steps))
            return
        forks = [fork for _ in range(repeat.most - repeat.least) for fork in self._optional(repeat.part)]
        for fork in forks:
            self._fill(fork, fork + 1, len(self.steps))

    def _optional(self, part: Expression) -> Iterator[int]:
        yield self._gap()
        self.write(part)

    def _gap(self) -> int:
        self.steps.append(_Step())
        return len(self.steps) - 1

    def _fill(self, gap: int, *ways: int) -> None:
        self.steps[gap] = _Step(ways=ways)
