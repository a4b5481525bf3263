"""What else may come from outside where a rule listens to it: spending, a deadline, objectives, a wish to stop.

A loop without such a rule is verified without it, because it would make no difference but more states.
"""

from collections.abc import Callable, Sequence

from attrs import evolve

from agent.threads.completion import COMPLETE, PURSUE
from agent.verification.environment import CUT_OFF, EXAMPLES, FIRST, PEOPLE, SECOND, Examples, drafts
from agent.verification.invariants import arguments_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import DeadlineReached, InferenceFinished, InferenceRequested, SteeringGiven
from agent.vocabulary.messages import AssistantMessage, Usage
from bp import BThread, Event

__all__ = ["examples_for", "people_for"]

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
