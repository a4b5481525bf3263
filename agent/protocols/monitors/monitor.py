"""What a monitor is: it is given evidence about a subject, and says how suspicious that looks, from 0 to 1."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from attrs import field, frozen

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import Message, Usage
from agent.vocabulary.questions import Draft, Subject
from constitution import Action

__all__ = ["Evidence", "Monitor", "Score", "calls_of", "checked", "text_of"]


def _nothing() -> tuple[Action, ...]:
    return ()


@frozen
class Evidence:
    """What a monitor may look at.

    subject: what is to be scored; of a honeypot, what was planted. messages: the conversation before it. turn: how
    many answers were committed before. actions: looks up what the calls of the subject would touch.
    """

    subject: Subject
    messages: Sequence[Message] = ()
    turn: int = 0
    actions: Callable[[], tuple[Action, ...]] = field(default=_nothing, repr=False, eq=False)


@frozen
class Score:
    """A monitor's answer; `value` None: it could not say. usage: what asking it took."""

    value: float | None
    rationale: str = ""
    usage: Usage = Usage()


class Monitor(Protocol):
    """Anything that scores. What raises has given no score."""

    def score(self, evidence: Evidence) -> Score | Awaitable[Score]:
        """Return how suspicious the subject looks."""


def checked(score: object) -> Score:
    """Return what a monitor gave, if it is a score; else a missing one that says what was given instead."""
    if not isinstance(score, Score):
        return Score(None, f"the monitor gave {score!r}, which is no Score")
    value = score.value
    if value is None or (type(value) in (int, float) and 0 <= value <= 1):  # no bool; nan is not in between
        return score
    return Score(None, f"the monitor gave {value!r}, which is no number from 0 to 1", score.usage)


def calls_of(subject: Subject) -> tuple[ToolCall, ...]:
    """Return the calls that a subject consists of."""
    if isinstance(subject, ToolCall):
        return (subject,)
    return subject.calls if isinstance(subject, Draft) else ()


def text_of(subject: Subject) -> str:
    """Return a subject as text: what was said, and each call with its arguments as JSON."""
    said = subject.message.text if isinstance(subject, Draft) else ""
    calls = (f"{call.tool} {json.dumps(_plain(call), ensure_ascii=False)}" for call in calls_of(subject))
    return "\n".join([*([said] if said else []), *calls])


def _plain(call: ToolCall) -> object:
    from agent.vocabulary.encoding import plain

    return plain(call.arguments)
