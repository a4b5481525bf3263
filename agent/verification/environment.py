"""Everything that may come from outside, as b-threads derived from the declarations of the effects."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from attrs import evolve

from agent.effects.monitoring import Observed, laboratory
from agent.threads.completion import COMPLETE, PURSUE
from agent.verification.invariants import STILL_UNDER_WAY, arguments_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    DeadlineReached,
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
from agent.vocabulary.messages import AssistantMessage, Usage
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    ChanceDrawn,
    ChanceRequested,
    LedgerGiven,
    LedgerRequested,
    ScoreGiven,
    ScoreRequested,
)
from bp import BThread, BThreadBody, Event, any_of, bthread, start, sync
from bp.runner import Broken, Effect
from constitution import Action, Level, Verdict

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


PURSUING = ToolCall("c1", PURSUE, {"user_prompt": "go", "objective": "all of it"})
COMPLETING = ToolCall("c1", COMPLETE, {"result": "it is done", "status": "success"})

SAFE_FIRST, SAFE_SECOND = evolve(FIRST, parallel=True), evolve(SECOND, parallel=True)

Answers = Callable[[InferenceRequested], tuple[Event, ...]]

SPENDERS = {"budget_of_tokens", "budget_per_turn", "budget_of_cost", "summarize_when_full"}
WORKERS = {"complete_to_finish", "one_objective", "iterations_at_most"}


def people_for(rules: Sequence[BThread]) -> tuple[Event, ...]:
    """Return what people, and the clock, may say at any moment."""
    names = {rule.name for rule in rules}
    wish = (SteeringGiven("nonstop"),) if "stop_when_said" in names else ()
    clock = (DeadlineReached(1.0),) if "deadline" in names else ()
    return (*PEOPLE, *wish, *clock)


def examples_for(rules: Sequence[BThread]) -> Examples:
    """Return what each effect may return."""
    names = {rule.name for rule in rules}
    answers: Answers = works if names & WORKERS else drafts
    if any(rule.name == "one_at_a_time" and arguments_of(rule)["together"] != "none" for rule in rules):
        answers = with_safe_calls(answers)
    if names & SPENDERS:
        answers = spending(answers)
    return {**EXAMPLES, InferenceRequested: answers}


def works(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model that works on an objective may answer, in the place of some of what others may."""
    answers = ((FIRST,), (PURSUING,), (PURSUING, SECOND), (COMPLETING,), (COMPLETING, SECOND), (CUT_OFF,))
    called = tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in answers)
    return (*called, *(draft for draft in drafts(requested) if not getattr(draft, "calls", ())))


def with_safe_calls(answers: Answers) -> Answers:
    """Return the same answers, and some whose calls may run together, or one of them may."""
    pairs = ((SAFE_FIRST, SAFE_SECOND), (SAFE_FIRST, SECOND), (FIRST, SAFE_SECOND))

    def more(requested: InferenceRequested) -> tuple[Event, ...]:
        called = (InferenceFinished(requested.draft, AssistantMessage(), pair) for pair in pairs)
        return (*answers(requested), *called)

    return more


def spending(answers: Answers) -> Answers:
    """Return the same answers, each taking a dollar and a token for each of its calls, a text alone nothing."""
    return lambda requested: tuple(map(_spent, answers(requested)))


def _spent(draft: Event) -> Event:
    if isinstance(draft, InferenceFinished) and not draft.message.text:
        return evolve(draft, usage=Usage(0, max(1, len(draft.calls)), cost=1.0))
    return draft


# Where there are protocols: what monitors, auditors and chance may say.

OTHER = ToolCall("c1", "other")
"""A call of another draft: the id of the first one, and not the same."""


def laboratory_effects() -> tuple[Effect, ...]:
    """Return the effects of the laboratory as declared; nothing of them runs here, and so there is no agent."""
    return tuple(make(cast(Observed, None)) for make in laboratory())


def drafts_of_models(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer: one call or two, or a text; other drafts have another call, of the same id."""
    answers = ((FIRST,), (FIRST, SECOND)) if requested.draft == "d0" else ((OTHER,),)
    called = tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in answers)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (*called, said, InferenceFailed(requested.draft, "busy", retryable=True))


def descriptions_by_tool(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return what is found on disk; protocols that look at it are told apart by the tool."""
    return (ActionDescribed(proposed.call, Action(proposed.call.tool, "write", "/", command="allow")),)


def scores(requested: ScoreRequested) -> tuple[Event, ...]:
    """Return a score that is low and one that is high; a missing one is the outcome of an effect that broke."""
    return tuple(ScoreGiven(requested.subject, requested.monitor, value) for value in (0.0, 1.0))


def verdicts(requested: AuditRequested) -> tuple[Event, ...]:
    """Return both verdicts; a missing one is the outcome of an effect that broke."""
    subject, auditor = requested.subject, requested.auditor
    return (AuditGiven(subject, auditor, "harmless"), AuditGiven(subject, auditor, "harmful"))


def lots(requested: ChanceRequested) -> tuple[Event, ...]:
    """Return every lot."""
    return tuple(ChanceDrawn(requested.key, lot) for lot in range(len(requested.weights)))


EXAMPLES_WITH_PROTOCOLS: Examples = {
    **EXAMPLES,
    InferenceRequested: drafts_of_models,
    ProposedAction: descriptions_by_tool,
    ScoreRequested: scores,
    AuditRequested: verdicts,
    ChanceRequested: lots,
    LedgerRequested: lambda _: (LedgerGiven(0.0), LedgerGiven(1.0)),
}
"""What each effect may return where there are protocols."""


def few_drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return two calls at once, or a text; of other drafts the other call."""
    calls = (FIRST, SECOND) if requested.draft == "d0" else (OTHER,)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (InferenceFinished(requested.draft, AssistantMessage(), calls), said)


FEW_EXAMPLES: Examples = {**EXAMPLES_WITH_PROTOCOLS, InferenceRequested: few_drafts}
"""Enough of them that protocols can disturb each other: for the many pairs that there are."""


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return the same; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    return {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES


def examples_with(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what each effect may return where there are protocols; where the constitution judges, every verdict."""
    judged = any(bthread.name == "by_constitution" for bthread in (*rules, *protocols))
    described: Examples = {ProposedAction: EXAMPLES[ProposedAction]} if judged else {}
    return {**EXAMPLES_WITH_PROTOCOLS, **described}
