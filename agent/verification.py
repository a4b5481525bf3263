"""The shipped loop, model-checked: against a model, a constitution, a person and tools that may do anything.

The environment is derived from the declarations of the effects: whatever starts one promises one of its outcomes;
after an event of its `until`, the outcome of having been cut short. What outcomes may carry is kept small (two
calls, three verdicts), and call ids and drafts recycle their names, so that an endless conversation is finite.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from agent.calls import ToolCall
from agent.effects import approval_effect, backoff_effect, description_effect, execution_effect, inference_effect
from agent.events import (
    AbortAsked,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from agent.invariants import invariants
from agent.messages import AssistantMessage
from agent.models import ScriptedModel
from agent.presets import Preset
from agent.projections import Conversation, Totals
from agent.threads import CORE
from agent.tools import Workspace
from agent.tools.toolbox import Toolbox
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, event, start, sync, verify
from bp.runner import Broken, Effect
from constitution import Action, Level, Verdict

__all__ = ["SMALL", "environment", "loop_rules", "verify_loop"]

FIRST, SECOND = ToolCall("c1", "first"), ToolCall("c2", "second")
CUT_OFF = ToolCall("c1", "first", flaw="truncated")
STILL_RUNNING = event("still_running")  # time passes; a tool may go on for ever
PEOPLE = (PromptGiven("go"), StopAsked(), AbortAsked())
SMALL: dict[str, Any] = {"max_iterations": 2, "max_failures": 2, "max_empty_answers": 2, "attempts": 2}

Examples = Mapping[type[Event], Callable[[Any], tuple[Event, ...]]]


def verify_loop(
    rules: Sequence[BThread], *, core: Sequence[BThread] = CORE, examples: Examples | None = None, **options: Any
) -> Verification:
    """Model-check a loop of `core` and `rules` with all invariants; `options` are those of `bp.verifier.verify`."""
    world = environment(_effects(), EXAMPLES if examples is None else examples)
    return verify(*core, *rules, *invariants(), environment=world, possible=PEOPLE, **options)


def loop_rules(preset: Preset) -> tuple[BThread, ...]:
    """Return the rules of `preset` with small limits and a constitution that may say anything."""
    limits: dict[str, Any] = {name: value for name, value in SMALL.items() if getattr(preset, name) is not None}
    return evolve(preset, **limits).rules(any_verdict)


def any_verdict(action: Action) -> Verdict:
    """Judge as the described action says: its environment chose."""
    return Verdict(Level(action.command or "deny"), "any_rule")


def environment(effects: Sequence[Effect], examples: Examples) -> tuple[BThread, ...]:
    """Return the b-threads that promise the outcomes of `effects`."""
    return tuple(outcomes_of(effect.on, effect.until, effect.broken, examples[effect.on]) for effect in effects)


@bthread(name="world")
def outcomes_of(
    on: type[Event],
    until: Callable[[Any], Any],
    broken: Callable[[Any, Broken], Event],
    examples: Callable[[Any], tuple[Event, ...]],
) -> BThreadBody:
    """Each start of an effect promises one of its outcomes."""
    while True:
        started = yield sync(wait_for=on)
        yield start(under_way(examples(started), until(started), broken(started, Broken("cancelled"))))


@bthread(name="effect")
def under_way(outcomes: tuple[Event, ...], until: Any, cut_short: Event) -> BThreadBody:
    """Any of the outcomes may come; when the effect is cancelled, the one of having been cut short comes."""
    said: Event = STILL_RUNNING
    while said == STILL_RUNNING:
        said = yield sync(request=any_of(*outcomes), wait_for=until)
    if said not in outcomes:
        yield sync(request=cut_short)


def drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer: text, calls, nothing, a cut-off call, or an error."""
    answers = ((FIRST,), (FIRST, SECOND), (CUT_OFF,), (CUT_OFF, SECOND))
    called = tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in answers)
    said = tuple(InferenceFinished(requested.draft, AssistantMessage(text)) for text in ("Done.", ""))
    failed = tuple(InferenceFailed(requested.draft, "error", retryable) for retryable in (True, False))
    return (*called, *said, *failed)


def descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return an action for each verdict, and one that could not be described."""
    facts = Action(proposed.call.tool, "write", "/")
    judged = tuple(ActionDescribed(proposed.call, evolve(facts, command=level.value)) for level in Level)
    return (*judged, ActionDescribed(proposed.call, facts, problem="gone"))


EXAMPLES: Examples = {
    InferenceRequested: drafts,
    ProposedAction: descriptions,
    ApprovalAsked: lambda asked: tuple(ApprovalAnswered(asked.call, yes) for yes in (True, False)),
    ToolStarted: lambda started: (
        ToolFinished(started.call, "done"),
        ToolFinished(started.call, "failed", is_error=True),
        STILL_RUNNING,
    ),
    BackoffStarted: lambda started: (BackoffElapsed(started.attempt, 0.0),),
}


def _effects() -> tuple[Effect, ...]:
    """Return the effects of the loop as declared; nothing of them runs here."""
    toolbox = Toolbox((), Workspace("/"))
    asking = inference_effect(ScriptedModel([]), toolbox, "", Conversation(), Totals(), None)
    return (
        asking,
        description_effect(toolbox),
        execution_effect(toolbox, None),
        approval_effect(None),
        backoff_effect(),
    )
