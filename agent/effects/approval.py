"""Ask the user about a call, and look its facts up again after the answer. No answer, or an error, means no.

A user may also decide later: the run rests until then, and `Decisions` answer the question when it is put again.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from agent.effects.execution import OVER, describe, unknown_facts
from agent.tools.blocking import run_in_background
from agent.tools.definition import Toolbox
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import (
    AbortAsked,
    ActionChanged,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    DeadlineReached,
    FactsConfirmed,
    FactsRequested,
    GateApproved,
    GateRejected,
    ProposedAction,
    StopAsked,
)
from bp import Event, Step, where
from bp.runner import LATER, Broken, Effect, Later
from constitution import Action

Answer = bool | str | Later | None
Approver = Callable[[ApprovalAsked], Awaitable[Answer] | Answer]
"""Gives True for yes, False for no, a text (what the user said instead, which is a no), None (no user is present), or
`LATER`: the run rests until the question is put again and answered."""


Approval = Approver | Literal["later"] | None


def approval_effect(approver: Approver | None) -> Effect:
    """Return the effect of `approval_asked`; without an approver no user is present.

    An approver that raises, or returns an invalid answer, counts as a no.
    """

    async def ask(asked: ApprovalAsked) -> ApprovalAnswered | Later:
        answer = None if approver is None else approver(asked)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is LATER:
            return LATER
        if not isinstance(answer, bool | str | None):
            raise TypeError(f"the approver gave {answer!r}; it must give True, False, a text, None or LATER")
        said = answer if isinstance(answer, str) else ""
        return ApprovalAnswered(asked.call, yes=answer is True, text=said, present=answer is not None)

    def unanswered(asked: ApprovalAsked, broken: Broken) -> ApprovalAnswered:
        reason = f"asking failed: {broken.error}" if broken.error else "the question was withdrawn"
        return ApprovalAnswered(asked.call, yes=False, text=reason)

    def until(asked: ApprovalAsked) -> Any:
        return where(GateRejected, call=asked.call) | AbortAsked | StopAsked | DeadlineReached

    return Effect(ApprovalAsked, ask, (ApprovalAnswered,), unanswered, until)


MOST = 5
"""The number of changes that the user is shown."""


def lookup_effect(toolbox: Toolbox) -> Effect:
    """Return the effect of `facts_requested`."""

    def look_up(requested: FactsRequested) -> Event | Awaitable[Event]:
        def compared() -> Event:
            now = describe(requested.call, toolbox)
            if changes := tuple(islice(changes_between(requested.judged, now), MOST)):
                return ActionChanged(requested.call, now, changes=changes, times=requested.times)
            return FactsConfirmed(requested.call)

        return run_in_background(compared) if toolbox.changes_files(requested.call) else compared()

    def unknown(requested: FactsRequested, broken: Broken) -> ActionChanged:
        facts, problem = unknown_facts(requested.call, broken)
        return ActionChanged(requested.call, facts, problem, ("what it would touch cannot be found",), requested.times)

    return Effect(FactsRequested, look_up, (FactsConfirmed, ActionChanged), unknown, OVER)


def changes_between(before: Action, now: Action) -> Iterator[str]:
    """Yield the differences between the facts of a call before and now, each in a few words."""
    if before.cwd != now.cwd:
        yield f"it would start in {now.cwd}, not in {before.cwd}"
    if before.sandbox != now.sandbox:
        yield f"its sandbox is {now.sandbox or 'off'}, not {before.sandbox or 'off'}"
    used, uses = ({use.given: use.resolved for use in facts.paths} for facts in (before, now))
    led = "{name} leads to {now}, not to {before}"
    for was, known, told in (
        (used, uses, led), (before.resolved, now.resolved, led),
        (before.executables, now.executables, "{name} starts {now}, not {before}"),
        (before.contents, now.contents, "{name}, which it would run, has other content"),
    ):  # fmt: skip
        yield from _differences(was, known, told)
    yield from _members(before.kept, now.kept, "kept by snapshots")


def _differences(before: Mapping[str, str], now: Mapping[str, str], told: str) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        if before.get(name) != now.get(name):
            yield told.format(name=name, now=now.get(name) or "nothing", before=before.get(name) or "nothing")


def _members(before: tuple[str, ...], now: tuple[str, ...], what: str) -> Iterator[str]:
    yield from (f"{name} is {what}" for name in now if name not in before)
    yield from (f"{name} is not {what} any more" for name in before if name not in now)


class UndecidableError(AgentError):
    """There is no question to answer: the call is unknown, decided already, or no question was asked about it."""


def open_questions(steps: Iterable[Step]) -> dict[str, ApprovalAsked]:
    """Return the open questions, by the id of their call."""
    questions: dict[str, ApprovalAsked] = {}
    for step in steps:
        match step.event:
            case ApprovalAsked(call=call):
                questions[call.id] = step.event
            case ApprovalAnswered(call=call) | GateApproved(call=call) | GateRejected(call=call):
                questions.pop(call.id, None)
    return questions


class Decisions:
    """Answers that were given before their question is put (again)."""

    def __init__(self) -> None:
        """Begin with none."""
        self._answers: dict[str, Answer] = {}

    def decide(self, steps: Iterable[Step], call: str, yes: bool, text: str) -> None:
        """Answer the question about the call with this id, which is open after `steps`. Raises UndecidableError."""
        steps = tuple(steps)
        questions = open_questions(steps)
        if call not in questions:
            raise UndecidableError(_why_not(steps, call, tuple(questions)))
        if call in self._answers:
            raise UndecidableError(f"the call {call!r} has been decided already")
        self._answers[call] = yes or text

    def answering(self, approval: Approval) -> Approver | None:
        """Return an approver that gives the answers so far, and asks `approval` for the others."""
        if approval is None and not self._answers:
            return None

        def answer(asked: ApprovalAsked) -> object:
            if asked.call.id in self._answers:
                return self._answers.pop(asked.call.id)
            if approval == "later":
                return LATER
            return None if approval is None else approval(asked)

        return answer  # type: ignore[return-value]


def _why_not(steps: tuple[Step, ...], call: str, waiting: tuple[str, ...]) -> str:
    cure = f"; waiting: {', '.join(waiting)}" if waiting else "; no call waits for a decision"
    for step in reversed(steps):
        match step.event:
            case ApprovalAnswered() as answered if answered.call.id == call:
                return f"the call {call!r} has been decided already: {'yes' if answered.yes else 'no'}{cure}"
            case GateApproved() | GateRejected() as decided if decided.call.id == call:
                how = "approved" if isinstance(decided, GateApproved) else "rejected"
                return f"the call {call!r} was {how} without asking a user{cure}"
            case CallAnswered() as answered if answered.call == call:
                return f"the call {call!r} was answered already{cure}"
            case ProposedAction() as proposed if proposed.call.id == call:
                return f"no user was asked about the call {call!r} yet{cure}"
    return f"there is no call {call!r} in this run{cure}"
