"""What must hold for calls: each is decided once, runs only when it was approved, and is answered once."""

from collections.abc import Callable

from agent.threads.order import Together
from agent.vocabulary.calls import ToolCall, without
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from bp import BThreadBody, bthread, sync, where
from constitution import Action, Level, Verdict

__all__ = [
    "answers_come_in_source_order",
    "calls_come_one_at_a_time",
    "each_answer_tells_what_happened",
    "each_call_is_answered_once",
    "each_proposal_is_decided_once",
    "flawed_calls_do_not_run",
    "starts_were_approved",
    "the_constitution_is_obeyed",
    "what_is_approved_runs",
]


NONE_YET: frozenset[ToolCall] = frozenset()


@bthread
def starts_were_approved() -> BThreadBody:
    """No tool starts unless exactly that call value was approved, once for each start."""
    approved = NONE_YET
    while True:
        said = yield sync(wait_for=GateApproved | ToolStarted | CallAnswered)
        if isinstance(said, GateApproved):
            approved |= {said.call}
        elif isinstance(said, ToolStarted):
            assert said.call in approved, f"{said.call.id} starts, and the gate has not approved it"
            approved -= {said.call}
        else:
            approved = _unanswered(approved, said.call)


@bthread
def each_proposal_is_decided_once() -> BThreadBody:
    """A proposed action is described, then approved or rejected, once; and only if it was proposed."""
    proposed, described = NONE_YET, NONE_YET
    while True:
        said = yield sync(wait_for=ProposedAction | ActionDescribed | GateApproved | GateRejected)
        if isinstance(said, ProposedAction):
            assert said.call not in proposed | described, f"{said.call.id} is proposed twice"
            proposed |= {said.call}
        elif isinstance(said, ActionDescribed):
            proposed -= {said.call}
            described |= {said.call}
        else:
            assert said.call in described, f"{said.call.id} is decided twice, or before it was described"
            described -= {said.call}


@bthread
def each_call_is_answered_once() -> BThreadBody:
    """Each call of an answer is answered exactly once, before the next answer, the next inference and the end."""
    unanswered: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | CallAnswered | InferenceRequested | RunEnded)
        if isinstance(said, CallAnswered):
            assert said.call in unanswered, f"{said.call} is answered twice, or was never asked for"
            unanswered = without(unanswered, said.call)
        else:
            assert not unanswered, f"{said.name} comes while {', '.join(unanswered)} is not answered"
            unanswered = tuple(call.id for call in said.calls) if isinstance(said, AnswerCommitted) else ()


@bthread
def each_answer_tells_what_happened() -> BThreadBody:
    """A rejected call is answered as rejected and never runs; "ran" is said of those alone that ran to their end."""
    rejected, started, finished = NONE_YET, NONE_YET, NONE_YET
    while True:
        said = yield sync(wait_for=GateRejected | ToolStarted | ToolFinished | CallAnswered)
        if isinstance(said, GateRejected):
            rejected |= {said.call}
        elif isinstance(said, ToolStarted):
            assert said.call not in rejected, f"{said.call.id} was rejected, and runs"
            started |= {said.call}
        elif isinstance(said, ToolFinished):
            started, finished = started - {said.call}, finished | {said.call}
        else:
            assert (said.outcome == "rejected") == _is_of(said.call, rejected), _untrue(said, rejected)
            assert (said.outcome == "ran") == _is_of(said.call, finished), _untrue(said, rejected)
            assert not _is_of(said.call, started), f"{said.call} is answered while it runs"
            rejected, finished = _unanswered(rejected, said.call), _unanswered(finished, said.call)


@bthread
def flawed_calls_do_not_run() -> BThreadBody:
    """A call that came cut off, unreadable, unknown or with wrong arguments is neither judged nor run."""
    while True:
        said = yield sync(wait_for=ProposedAction | ToolStarted)
        assert said.call.flaw is None, f"{said.name} of {said.call.id}, which is {said.call.flaw}"


@bthread
def the_constitution_is_obeyed(judge: Callable[[Action], Verdict]) -> BThreadBody:
    """What `judge` denies is rejected, what it wants asked is approved only after a yes; else it has no objection."""
    forbidden, questionable, asked_about = NONE_YET, NONE_YET, NONE_YET
    while True:
        said = yield sync(wait_for=ActionDescribed | ApprovalAnswered | GateApproved | GateRejected)
        if isinstance(said, ActionDescribed):
            level = Level.deny if said.problem is not None else judge(said.facts).level
            if level is Level.deny:
                forbidden |= {said.call}
            elif level is Level.ask:
                questionable |= {said.call}
                asked_about |= {said.call}
        elif isinstance(said, ApprovalAnswered):  # others may ask about it, too: each yes counts, and then each no
            questionable = questionable - {said.call} if said.yes else questionable | (asked_about & {said.call})
        else:
            objects = said.call in forbidden | questionable
            if isinstance(said, GateApproved):
                assert said.call not in forbidden, f"{said.call.id} is approved, and the constitution denies it"
                assert not objects, f"{said.call.id} is approved, and nobody said yes"
            else:
                blamed = any(refusal.bthread == "by_constitution" for refusal in said.refusals)
                assert objects or not blamed, f"{said.call.id} is rejected by a constitution that allows it"
            forbidden, questionable = forbidden - {said.call}, questionable - {said.call}
            asked_about -= {said.call}


@bthread
def what_is_approved_runs() -> BThreadBody:
    """A call that the gate approved runs, or is skipped, or the run ends: nobody else stands in its way."""
    approved = NONE_YET
    withheld = ""
    while True:
        said = yield sync(wait_for=where((GateApproved, ToolStarted, CallAnswered, InferenceRequested, RunEnded)))
        if isinstance(said, GateApproved):
            approved |= {said.call}
        elif isinstance(said, ToolStarted):
            approved -= {said.call}
        elif isinstance(said, CallAnswered):
            withheld = said.call if said.outcome == "ended" and _is_of(said.call, approved) else withheld
            approved = _unanswered(approved, said.call)
        else:
            assert isinstance(said, RunEnded) or not withheld, (
                f"{withheld} was approved and did not run; no end follows"
            )
            withheld = ""


@bthread
def answers_come_in_source_order() -> BThreadBody:
    """Calls are answered in the order in which the model asked for them."""
    unanswered: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | CallAnswered)
        if isinstance(said, AnswerCommitted):
            unanswered = tuple(call.id for call in said.calls)
        else:
            assert said.call not in unanswered[1:], f"{said.call} is answered before {unanswered[0]}"
            unanswered = unanswered[1:]


@bthread
def calls_come_one_at_a_time(together: Together = "none") -> BThreadBody:
    """No call is proposed before the earlier ones are answered, except those beside it that may run together with it.

    Where neighbours may, a call that may not is a barrier; where all may, then only if every call of the answer may.
    """
    calls: tuple[ToolCall, ...] = ()
    answered: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=AnswerCommitted | ProposedAction | CallAnswered)
        if isinstance(said, AnswerCommitted):
            calls, answered = said.calls, frozenset()
        elif isinstance(said, CallAnswered):
            answered |= {said.call}
        else:
            for earlier in _not_beside(said.call, calls, together):
                assert earlier in answered, f"{said.call.id} is proposed before {earlier} is answered"


def _not_beside(proposed: ToolCall, calls: tuple[ToolCall, ...], together: Together) -> tuple[str, ...]:
    """Return the ids of the calls before `proposed` that must not run while it does."""
    ids = tuple(call.id for call in calls)
    before = ids.index(proposed.id) if proposed.id in ids else 0
    first = before
    if together == "all" and all(call.parallel for call in calls):
        first = 0
    elif together == "neighbours" and proposed.parallel:
        while first > 0 and calls[first - 1].parallel:
            first -= 1
    return ids[:first]


def _unanswered(calls: frozenset[ToolCall], answered: str) -> frozenset[ToolCall]:
    return frozenset(call for call in calls if call.id != answered)


def _is_of(answered: str, calls: frozenset[ToolCall]) -> bool:
    return any(call.id == answered for call in calls)


def _untrue(said: CallAnswered, rejected: frozenset[ToolCall]) -> str:
    happened = "was rejected" if _is_of(said.call, rejected) else "was not, or has not ended"
    return f"{said.call} is answered as {said.outcome!r}, but it {happened}"
