"""The environment of verification: external events as b-threads, derived from the declarations of effects."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve

from agent.threads.core import OWN
from agent.threads.endings import COMPLETE, PURSUE
from agent.verification.invariants import STILL_UNDER_WAY, arguments_of, shipped_name
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ActionChanged,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    DeadlineReached,
    FactsConfirmed,
    FactsRequested,
    FollowUpGiven,
    GateApproved,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    SteeringGiven,
    StopAsked,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, ToolResult, Usage
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    AuditVerdict,
    ChanceDrawn,
    ChanceRequested,
    ScoreGiven,
    ScoreRequested,
)
from bp import BThread, BThreadBody, Event, any_of, bthread, start, sync
from bp.runner import Broken, Effect
from constitution import GRANTED, Action, Level, Verdict

FIRST, SECOND, THIRD = ToolCall("c1", "first"), ToolCall("c2", "second"), ToolCall("c3", "third")
CUT_OFF = ToolCall("c1", "first", flaw="cut off")

PEOPLE = (
    HistoryGiven(()),
    PromptGiven("go"),
    SteeringGiven("rather this"),
    FollowUpGiven("and then that"),
    StopAsked(),
    AbortAsked(),
)
"""Possible events by users: at any moment, any number of times, or never."""

Examples = Mapping[type[Event], Callable[[Any], tuple[Event, ...]]]

ANNOUNCED, SILENT = AssistantMessage("First this."), AssistantMessage()
"""The messages of answers with calls: with text and without."""


def environment(effects: Sequence[Effect], examples: Examples) -> tuple[BThread, ...]:
    """Return the b-threads that promise the outcomes of `effects`; `examples`: the possible results of each."""
    return tuple(
        outcomes(effect.on, effect.until, effect.broken, examples[effect.on]).named(f"{WORLD} {effect.on.name}")
        for effect in effects
    )


WORLD, EFFECT = "what comes of", "effect"
"""The name prefixes of an environment's b-threads: one per effect, and one per effect under way."""


def is_of_world(name: str) -> bool:
    """Return whether the b-thread of this name belongs to the environment."""
    return name == EFFECT or name.startswith(WORLD)


@bthread
def outcomes(
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


@bthread(name=EFFECT)
def under_way(outcomes: tuple[Event, ...], until: Any, cancelled: Event) -> BThreadBody:
    """Any of the outcomes may come, now, later or never; after cancellation, one of them or `cancelled`."""
    said: Event = STILL_UNDER_WAY
    while said == STILL_UNDER_WAY:
        said = yield sync(request=any_of(*outcomes, STILL_UNDER_WAY), wait_for=until)
    if said not in outcomes:
        yield sync(request=any_of(*outcomes, cancelled))


def drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return the possible answers of a model: calls, complete or cut off, with or without text; a text; an error.

    The calls of an answer have different ids: the client renames duplicate and empty ones. The invariant
    `ids_of_an_answer_differ` checks this of the environment, and of real runs.
    """
    answers = ((SILENT, (FIRST,)), (ANNOUNCED, (FIRST,)), (ANNOUNCED, (FIRST, SECOND)))
    flawed = ((SILENT, (CUT_OFF,)), (ANNOUNCED, (CUT_OFF, SECOND)))
    called = tuple(InferenceFinished(requested.draft, message, calls) for message, calls in (*answers, *flawed))
    said = tuple(InferenceFinished(requested.draft, AssistantMessage(text)) for text in ("Done.", ""))
    return (*called, *said, InferenceFailed(requested.draft, "busy", retryable=True))


def descriptions(proposed: ProposedAction) -> tuple[ActionDescribed, ...]:
    """Return an action for each verdict."""
    facts = Action(proposed.call.tool, "write", "/")
    return tuple(ActionDescribed(proposed.call, evolve(facts, command=level.value)) for level in Level)


def lookups(requested: FactsRequested) -> tuple[Event, ...]:
    """Return facts without changes, and changes with the same verdict or none."""
    call, facts, times = requested.call, requested.judged, requested.times
    changed = (evolve(facts, tool=f"{call.tool}, changed"), evolve(facts, command=Level.allow.value))
    return (FactsConfirmed(call), *(ActionChanged(call, each, changes=("a link",), times=times) for each in changed))


def any_verdict(action: Action) -> Verdict:
    """Return the verdict that the environment put into the action; allow by default."""
    if action.command == GRANTED.rule:
        return GRANTED
    named = (level for level in Level if level.value == action.command)
    return Verdict(next(named, Level.allow), "any_rule")


EXAMPLES: Examples = {
    InferenceRequested: drafts,
    ProposedAction: descriptions,
    ApprovalAsked: lambda asked: (ApprovalAnswered(asked.call, yes=True), ApprovalAnswered(asked.call, yes=False)),
    FactsRequested: lookups,
    ToolStarted: lambda started: (ToolFinished(started.call, ToolResult("done")),),
    MessagesSought: lambda sought: (MessagesFound(sought.what), MessagesFound(sought.what, ("rather this",))),
    BackoffStarted: lambda started: (BackoffElapsed(started.attempt, 0.0),),
    SnapshotRequested: lambda requested: (SnapshotTaken("kept"), SnapshotFailed("the disk is full")),
    SummaryRequested: lambda requested: (SummaryFinished("so far"), SummaryFailed("")),
}
"""Outcomes that each effect may have."""


PURSUING = ToolCall("c1", PURSUE, {"user_prompt": "go", "objective": "all of it"})
COMPLETING = ToolCall("c1", COMPLETE, {"result": "it is done", "status": "success"})

SAFE_FIRST, SAFE_SECOND = evolve(FIRST, parallel=True), evolve(SECOND, parallel=True)

Answers = Callable[[InferenceRequested], tuple[Event, ...]]

SPENDERS = {"budget_of_tokens", "budget_per_turn", "budget_of_cost", "summarize_when_full"}
WORKERS = {"complete_to_finish", "one_objective", "iterations_at_most"}


def people_for(rules: Sequence[BThread]) -> tuple[Event, ...]:
    """Return the possible events of users and the clock."""
    names = set(map(shipped_name, rules))
    stopping = (SteeringGiven("nonstop"),) if "stop_when_said" in names else ()
    clock = (DeadlineReached(1.0),) if "deadline" in names else ()
    return (*PEOPLE, *stopping, *clock)


def examples_for(rules: Sequence[BThread]) -> Examples:
    """Return the possible results of each effect."""
    names = set(map(shipped_name, rules))
    answers: Answers = works if names & WORKERS else drafts
    if any(shipped_name(rule) == "one_at_a_time" and arguments_of(rule)["together"] != "none" for rule in rules):
        answers = with_safe_calls(answers)
    if names & SPENDERS:
        answers = spending(answers)
    if "only_whole_answers" in names:
        answers = cut_off(answers)
    if "recover_from_overflow" in names:
        answers = overflowing(answers)
    return with_actions({**EXAMPLES, InferenceRequested: answers}, declared_actions(rules))


def declared_actions(bthreads: Sequence[BThread]) -> tuple[GateApproved, ...]:
    """Return the examples of actions that b-threads declare for their predicates.

    The module of a b-thread's function has a mapping `EXAMPLES` from the name of the function to actions, some of which
    match, and some do not.
    """
    declared = (
        bthread.function.__globals__.get("EXAMPLES", {}).get(bthread.function.__name__, ()) for bthread in bthreads
    )
    return tuple(dict.fromkeys(action for actions in declared for action in actions))


def with_actions(examples: Examples, actions: tuple[GateApproved, ...]) -> Examples:
    """Return the same examples, with answers that call each of these actions, and all at once."""
    if not actions:
        return examples
    calls = tuple(numbered(place, action.call) for place, action in enumerate(actions, start=1))
    answers = tuple(dict.fromkeys((*((numbered(1, call),) for call in calls), calls)))
    facts = tuple((numbered(0, action.call), action.facts) for action in actions)
    drafts, described = examples[InferenceRequested], examples[ProposedAction]

    def with_calls(asked: InferenceRequested) -> tuple[Event, ...]:
        return (*drafts(asked), *(InferenceFinished(asked.draft, ANNOUNCED, answer) for answer in answers))

    def with_facts(proposed: ProposedAction) -> tuple[Event, ...]:
        found = [action for call, action in facts if call == numbered(0, proposed.call)]
        return tuple(ActionDescribed(proposed.call, action) for action in found) or described(proposed)

    return {**examples, InferenceRequested: with_calls, ProposedAction: with_facts}


def numbered(number: int, call: ToolCall) -> ToolCall:
    """Return the call with an id by its number."""
    return evolve(call, id=f"c{number}")


def in_threes(examples: Examples) -> Examples:
    """Return the same examples with a third call in each answer that has two whole ones."""
    answers = examples[InferenceRequested]
    return {**examples, InferenceRequested: lambda asked: tuple(map(_with_third, answers(asked)))}


def _with_third(draft: Event) -> Event:
    if isinstance(draft, InferenceFinished) and draft.calls == (FIRST, SECOND):
        return evolve(draft, calls=(FIRST, SECOND, THIRD))
    return draft


def works(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return the possible answers of a model that works on an objective."""
    alone = ((FIRST,), (PURSUING,), (COMPLETING,), (CUT_OFF,))
    pairs = ((PURSUING, SECOND), (COMPLETING, SECOND))
    answers = (*((SILENT, calls) for calls in alone), *((ANNOUNCED, calls) for calls in pairs))
    called = tuple(InferenceFinished(requested.draft, message, calls) for message, calls in answers)
    return (*called, *(draft for draft in drafts(requested) if not getattr(draft, "calls", ())))


def with_safe_calls(answers: Answers) -> Answers:
    """Return the same answers, and some with calls of which one or all may run in parallel."""
    pairs = ((SAFE_FIRST, SAFE_SECOND), (SAFE_FIRST, SECOND), (FIRST, SAFE_SECOND))
    return lambda asked: (*answers(asked), *(InferenceFinished(asked.draft, SILENT, pair) for pair in pairs))


def spending(answers: Answers) -> Answers:
    """Return the same answers with a usage of one dollar and one token per call."""
    return lambda requested: tuple(map(_spent, answers(requested)))


def overflowing(answers: Answers) -> Answers:
    """Return the same answers, and the errors of a conversation that is too long, and may be made shorter or not."""
    too_long = partial(InferenceFailed, error="too long", reason="context_length_exceeded")
    return lambda asked: (*answers(asked), *(too_long(asked.draft, retryable=may) for may in (True, False)))


def cut_off(answers: Answers) -> Answers:
    """Return the same answers, and a text that was cut off."""
    return lambda asked: (*answers(asked), InferenceFinished(asked.draft, ANNOUNCED, stop_reason="length"))


def _spent(draft: Event) -> Event:
    if isinstance(draft, InferenceFinished) and (draft.calls or not draft.message.text):
        return evolve(draft, usage=Usage(0, max(1, len(draft.calls)), cost=1.0))
    return draft


# With protocols: possible results of monitors, auditors and random draws.

OTHER = ToolCall("c1", "other")
"""A call of another draft: another call with the same id."""


def drafts_of_models(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return the possible answers of a model: calls or a text; other drafts have another call with the same id."""
    answers = ((FIRST,), (FIRST, SECOND)) if requested.draft == OWN else ((OTHER,),)
    called = tuple(InferenceFinished(requested.draft, ANNOUNCED if calls[1:] else SILENT, calls) for calls in answers)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (*called, said, InferenceFailed(requested.draft, "busy", retryable=True))


FOUND: tuple[AuditVerdict, ...] = ("harmless", "harmful")

EXAMPLES_WITH_PROTOCOLS: Examples = {
    **EXAMPLES,
    InferenceRequested: drafts_of_models,
    ProposedAction: lambda proposed: (ActionDescribed(proposed.call, Action(proposed.call.tool, "write", "/")),),
    ScoreRequested: lambda asked: tuple(ScoreGiven(asked.subject, asked.monitor, value) for value in (0.0, 1.0)),
    AuditRequested: lambda asked: tuple(AuditGiven(asked.subject, asked.auditor, said) for said in FOUND),
    ChanceRequested: lambda asked: tuple(ChanceDrawn(asked.key, lot) for lot in range(len(asked.weights))),
}
"""Outcomes that each effect may have where there are protocols; they tell actions apart by the tool.

A missing score or verdict is the outcome of an effect that broke.
"""


def few_drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return two calls, or a text; for other drafts the other call."""
    calls = (FIRST, SECOND) if requested.draft == OWN else (OTHER,)
    said = InferenceFinished(requested.draft, AssistantMessage("Done."))
    return (InferenceFinished(requested.draft, ANNOUNCED, calls), said)


FEW_EXAMPLES: Examples = {**EXAMPLES_WITH_PROTOCOLS, InferenceRequested: few_drafts}
"""A minimal set in which protocols can interfere: for the many pairs."""


def usual_examples(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what each effect may return; where there are protocols and the constitution judges, every verdict."""
    if not protocols:
        return examples_for(rules)
    judged = "by_constitution" in map(shipped_name, (*rules, *protocols))
    described: Examples = {ProposedAction: EXAMPLES[ProposedAction]} if judged else {}
    return with_actions({**EXAMPLES_WITH_PROTOCOLS, **described}, declared_actions((*rules, *protocols)))
