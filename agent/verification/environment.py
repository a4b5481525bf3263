"""Everything that may come from outside, as b-threads: derived from the declarations of the effects.

Whatever starts an effect promises one of its outcomes: an example of what it returns, or what its `broken` makes of
its failing. After an event of its `until` the outcome of having been cut short may come too, and one of them does.
Until then it may also be under way for ever. What outcomes carry is kept small, and ids recycle their names, so that
an endless conversation is finite.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from agent.effects.approval import approval_effect
from agent.effects.backoff import backoff_effect
from agent.effects.description import description_effect
from agent.effects.execution import execution_effect
from agent.effects.hooks import NO_HOOKS
from agent.effects.inference import Measure, inference_effect
from agent.effects.seeking import seeking_effect
from agent.effects.summary import summary_effect
from agent.models.scripted import ScriptedModel
from agent.projections.context import Context
from agent.projections.conversation import Conversation
from agent.projections.state import StateTracker
from agent.projections.totals import Totals
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.verification.invariants.runs import STILL_UNDER_WAY
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    FollowUpGiven,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    SteeringGiven,
    StopAsked,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage
from bp import BThread, BThreadBody, Event, any_of, bthread, start, sync
from bp.runner import Broken, Effect
from constitution import Action, Level, Verdict

__all__ = ["EXAMPLES", "PEOPLE", "Examples", "any_verdict", "environment", "loop_effects"]

FIRST, SECOND = ToolCall("c1", "first"), ToolCall("c2", "second")
CUT_OFF = ToolCall("c1", "first", flaw="cut off")

PEOPLE = (
    HistoryGiven(()),
    PromptGiven("go"),
    SteeringGiven("rather this"),
    FollowUpGiven("and then that"),
    StopAsked(),
    AbortAsked(),
)
"""What people may say at any moment, any number of times, or never."""

Examples = Mapping[type[Event], Callable[[Any], tuple[Event, ...]]]


def environment(effects: Sequence[Effect], examples: Examples) -> tuple[BThread, ...]:
    """Return the b-threads that promise the outcomes of `effects`; `examples` are what each may return."""
    return tuple(world(effect.on, effect.until, effect.broken, examples[effect.on]) for effect in effects)


@bthread(name="world")
def world(
    on: type[Event],
    until: Callable[[Any], Any],
    broken: Callable[[Any, Broken], Event],
    examples: Callable[[Any], tuple[Event, ...]],
) -> BThreadBody:
    """Each start of an effect promises one of its outcomes."""
    while True:
        started = yield sync(wait_for=on)
        failed = broken(started, Broken("failed", RuntimeError("broken")))
        cancelled = broken(started, Broken("cancelled"))
        yield start(under_way((*examples(started), failed), until(started), cancelled))


@bthread(name="effect")
def under_way(outcomes: tuple[Event, ...], until: Any, cancelled: Event) -> BThreadBody:
    """Any of the outcomes may come, now or later or never; when it is cancelled, one of them or that comes."""
    said: Event = STILL_UNDER_WAY
    while said == STILL_UNDER_WAY:
        said = yield sync(request=any_of(*outcomes, STILL_UNDER_WAY), wait_for=until)
    if said not in outcomes:
        yield sync(request=any_of(*outcomes, cancelled))


def drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer: one call or several, whole or cut off, text, nothing, or an error."""
    answers = ((FIRST,), (FIRST, SECOND), (CUT_OFF,), (CUT_OFF, SECOND))
    called = tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in answers)
    said = tuple(InferenceFinished(requested.draft, AssistantMessage(text)) for text in ("Done.", ""))
    return (*called, *said, InferenceFailed(requested.draft, "busy", retryable=True))


def descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return an action for each verdict."""
    facts = Action(proposed.call.tool, "write", "/")
    return tuple(ActionDescribed(proposed.call, evolve(facts, command=level.value)) for level in Level)


def any_verdict(action: Action) -> Verdict:
    """Judge as the described action says: its environment chose."""
    return Verdict(Level(action.command or "deny"), "any_rule")


EXAMPLES: Examples = {
    InferenceRequested: drafts,
    ProposedAction: descriptions,
    ApprovalAsked: lambda asked: (ApprovalAnswered(asked.call, yes=True), ApprovalAnswered(asked.call, yes=False)),
    ToolStarted: lambda started: (ToolFinished(started.call, "done"),),
    MessagesSought: lambda sought: (MessagesFound(sought.what), MessagesFound(sought.what, ("rather this",))),
    BackoffStarted: lambda started: (BackoffElapsed(started.attempt, 0.0),),
    SummaryRequested: lambda requested: (SummaryFinished("so far"),),
}
"""What each effect may return."""


def loop_effects() -> tuple[Effect, ...]:
    """Return the effects of the loop as declared; nothing of them runs here."""
    toolbox = Toolbox((), Workspace("/"))
    context = Context(Conversation(), StateTracker())
    asking = inference_effect(ScriptedModel([]), toolbox, "", context, Totals(), None)
    acting = (description_effect(toolbox), execution_effect(toolbox, None))
    summing_up = summary_effect(ScriptedModel([]), context, Measure())
    people = (approval_effect(None), seeking_effect(NO_HOOKS))
    return (asking, *acting, *people, backoff_effect(), summing_up)
