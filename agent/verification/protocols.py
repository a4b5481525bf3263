"""The environment of protocols: whatever models, monitors, auditors and chance may do, in any order.

Scores are classes here: low, high and missing. Drafts of different models have calls of one id with other arguments,
so that a guard which looks at ids alone is found.
"""

from collections.abc import Sequence
from typing import cast

from agent.effects.monitoring import Observed, laboratory
from agent.verification.environment import (
    ANNOUNCED,
    EXAMPLES,
    FIRST,
    SECOND,
    SILENT,
    Examples,
    declared_actions,
    with_actions,
)
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
)
from agent.vocabulary.messages import AssistantMessage
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
from bp import BThread, Event
from bp.runner import Effect
from constitution import Action, deeds_of

OTHER = ToolCall("c1", "other")
"""A call of another draft: the id of the first one, and not the same."""


def load_tables(bthreads: Sequence[BThread]) -> None:
    """Have the constitution load what it loads when it first sees such actions, so that no predicate does meanwhile."""
    for facts in (Action("bash", "write", "/", command="true"), *(each.facts for each in declared_actions(bthreads))):
        deeds_of(facts)


def laboratory_effects() -> tuple[Effect, ...]:
    """Return the effects of the laboratory as declared; nothing of them runs here, and so there is no agent."""
    return tuple(make(cast(Observed, None)) for make in laboratory())


def drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer: one call or two, or a text; other drafts have another call, of the same id."""
    answers = ((FIRST,), (FIRST, SECOND)) if requested.draft == "d0" else ((OTHER,),)
    called = tuple(InferenceFinished(requested.draft, ANNOUNCED if calls[1:] else SILENT, calls) for calls in answers)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (*called, said, InferenceFailed(requested.draft, "busy", retryable=True))


def descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return what is found on disk; protocols that look at it are told apart by the tool."""
    return (ActionDescribed(proposed.call, Action(proposed.call.tool, "write", "/")),)


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
    InferenceRequested: drafts,
    ProposedAction: descriptions,
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
    return (InferenceFinished(requested.draft, ANNOUNCED, calls), said)


FEW_EXAMPLES: Examples = {**EXAMPLES_WITH_PROTOCOLS, InferenceRequested: few_drafts}
"""Enough of them that protocols can disturb each other: for the many pairs that there are."""


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return the same; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    examples: Examples = {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES
    return with_actions(examples, declared_actions(protocols))


def with_scores(examples: Examples) -> Examples:
    """Return examples of the loop's effects, and those of the laboratory's."""
    questions = (ScoreRequested, AuditRequested, ChanceRequested, LedgerRequested)
    return {**examples, **{question: EXAMPLES_WITH_PROTOCOLS[question] for question in questions}}


def examples_with_protocols(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what each effect may return; where the constitution judges, every verdict."""
    judged = any(bthread.name == "by_constitution" for bthread in (*rules, *protocols))
    described: Examples = {ProposedAction: EXAMPLES[ProposedAction]} if judged else {}
    return with_actions({**EXAMPLES_WITH_PROTOCOLS, **described}, declared_actions((*rules, *protocols)))
