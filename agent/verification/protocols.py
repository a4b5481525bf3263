"""Protocols, model-checked with the loop: whatever models, monitors, auditors and chance do, and in any order.

Scores are classes here: low, high and missing. Drafts of different models have calls of one id with other arguments,
so that a guard which looks at ids alone is found.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent.effects.declared import loop_effects
from agent.effects.monitoring import Observed, laboratory
from agent.threads.core import CORE
from agent.verification.environment import EXAMPLES, FIRST, SECOND, Examples, environment, people_for
from agent.verification.invariants import invariants_of
from agent.verification.loop import RulesChosen, one_of
from agent.verification.protocol_invariants import ALWAYS_WITH_PROTOCOLS, invariants_of_protocols
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
from bp import BThread, Event, Verification, verify
from bp.runner import Effect
from constitution import Action, deeds_of

OTHER = ToolCall("c1", "other")
"""A call of another draft: the id of the first one, and not the same."""


def verify_protocols(
    protocols: Sequence[BThread],
    rules: Sequence[BThread] = (),
    *,
    core: Sequence[BThread] = CORE,
    examples: Examples | None = None,
    invariants: Sequence[BThread] = (),
    **options: Any,
) -> Verification:
    """Model-check the loop with `rules` and `protocols`, and with the invariants of all; `options` are `bp.verify`'s.

    examples: what effects may return. invariants: more of them, for protocols that do not ship.
    """
    load_tables()
    world = environment((*loop_effects(), *laboratory_effects()), examples or examples_for(rules, protocols))
    kept = (*invariants_with(rules, protocols), *invariants)
    people = people_for((*rules, *protocols))
    options = {"endless": True, **options}
    return verify(*core, *rules, *protocols, *kept, environment=world, possible=people, **options)


def verify_each(
    programs: Mapping[str, Sequence[BThread]],
    rules: Sequence[BThread] = (),
    *,
    examples: Examples | None = None,
    **options: Any,
) -> Verification:
    """Model-check the loop with each of several sets of protocols, in one search, which is much faster than many.

    Every trace begins with the label of the set.
    """
    load_tables()
    everything = tuple(protocol for protocols in programs.values() for protocol in protocols)
    world = environment((*loop_effects(), *laboratory_effects()), examples or examples_for(rules, everything))
    loops = tuple(
        (RulesChosen(label), (*CORE, *rules, *protocols, *invariants_with(rules, protocols)))
        for label, protocols in programs.items()
    )
    options = {"endless": True, **options}
    return verify(one_of(loops), environment=world, possible=people_for(rules), **options)


def load_tables() -> None:
    """Have the constitution load what it loads with its first judgement, so that no predicate does so meanwhile."""
    deeds_of(Action("bash", "write", "/", command="true"))


def invariants_with(rules: Sequence[BThread], protocols: Sequence[BThread]) -> tuple[BThread, ...]:
    """Return all that has to hold of the loop with these."""
    of_protocols = invariants_of_protocols(protocols)
    return (*invariants_of((*rules, *protocols)), *ALWAYS_WITH_PROTOCOLS, *of_protocols)


def laboratory_effects() -> tuple[Effect, ...]:
    """Return the effects of the laboratory as declared; nothing of them runs here, and so there is no agent."""
    return tuple(make(cast(Observed, None)) for make in laboratory())


def drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return what a model may answer: one call or two, or a text; other drafts have another call, of the same id."""
    answers = ((FIRST,), (FIRST, SECOND)) if requested.draft == "d0" else ((OTHER,),)
    called = tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in answers)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (*called, said, InferenceFailed(requested.draft, "busy", retryable=True))


def descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
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
    return (InferenceFinished(requested.draft, AssistantMessage(), calls), said)


FEW_EXAMPLES: Examples = {**EXAMPLES_WITH_PROTOCOLS, InferenceRequested: few_drafts}
"""Enough of them that protocols can disturb each other: for the many pairs that there are."""


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return the same; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    return {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES


def with_scores(examples: Examples) -> Examples:
    """Return examples of the loop's effects, and those of the laboratory's."""
    questions = (ScoreRequested, AuditRequested, ChanceRequested, LedgerRequested)
    return {**examples, **{question: EXAMPLES_WITH_PROTOCOLS[question] for question in questions}}


def examples_for(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what each effect may return; where the constitution judges, every verdict."""
    judged = any(bthread.name == "by_constitution" for bthread in (*rules, *protocols))
    described: Examples = {ProposedAction: EXAMPLES[ProposedAction]} if judged else {}
    return {**EXAMPLES_WITH_PROTOCOLS, **described}
