"""Invariants of every loop, as monitors: b-threads that only watch, and fail when an invariant does not hold."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec

from attrs import field, frozen

from agent.effects.loop import declared_effects
from agent.effects.monitoring import laboratory_effects
from agent.threads.core import NEXT_TURN
from agent.threads.endings import COMPLETE, PURSUE
from agent.threads.steering import JOINTS, NEXT, UNSAID
from agent.threads.summaries import MOST_OVERFLOWS
from agent.threads.tool_calls import Together
from agent.vocabulary.calls import ToolCall, signature, still_open, without
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    DeadlineReached,
    FactsConfirmed,
    FollowUpGiven,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SandboxLifted,
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
from agent.vocabulary.messages import Usage
from agent.vocabulary.reasons import follow_ups_heard
from bp import ALL, BThread, BThreadBody, Event, EventSet, bthread, contains, event, sync, where
from bp.errors import require
from bp.statements import BThreadFunction
from constitution import Action, Level, Verdict

Arguments = Mapping[str, Any]
P = ParamSpec("P")


def shipped_name(bthread: BThread) -> str:
    """Return the name of a shipped b-thread; empty for one of the user, whatever its name."""
    ships = str(getattr(bthread.function, "__module__", "")).startswith("agent.")
    return bthread.made_by.name if ships and bthread.made_by is not None else ""


def arguments_of(rule: BThread) -> Arguments:
    """Return the arguments of a b-thread by name, with defaults."""
    bound = inspect.signature(rule.function).bind(*rule.args, **rule.kwargs)
    bound.apply_defaults()
    return bound.arguments


@frozen
class Invariants:
    """Monitors, each with the conditions on which it has to hold: one of them, or always where there is none."""

    rows: list[tuple[tuple[str, ...], BThreadFunction[Any]]] = field(factory=list)

    def of(self, *conditions: str) -> Callable[[Callable[P, BThreadBody]], BThreadFunction[P]]:
        """Return a decorator for a monitor that has to hold where all b-threads of a condition are: "retry, at_most".

        It is made with the arguments of the last of them, by their names; `rule` is its own name.
        """

        def keep(function: Callable[P, BThreadBody]) -> BThreadFunction[P]:
            monitor = bthread(function)
            self.rows.append((conditions, monitor))
            return monitor

        return keep

    def of_all(self, bthreads: Sequence[BThread]) -> tuple[BThread, ...]:
        """Return the monitors of a loop with these b-threads."""
        present = [(shipped_name(each), each) for each in bthreads]
        return tuple(dict.fromkeys(made for row in self.rows for made in _made(*row, present)))


def _made(
    conditions: tuple[str, ...], monitor: BThreadFunction[Any], present: list[tuple[str, BThread]]
) -> Iterator[BThread]:
    parameters = inspect.signature(monitor.function).parameters
    if not conditions:
        yield monitor()
    for *others, last in (condition.split(", ") for condition in conditions):
        if {name for name, _ in present}.issuperset(others):
            for rule in (each for name, each in present if name == last):
                for given in _each_monitor({"rule": last, **arguments_of(rule)}):
                    yield monitor(**{name: given[name] for name in parameters})


def _each_monitor(given: Arguments) -> list[Arguments]:
    """Return the arguments, once for each of several monitors of a protocol."""
    return [{**given, "monitor": monitor} for monitor in given["monitors"]] if "monitors" in given else [given]


OF_RULES = Invariants()
"""Invariants of the core, and of loops with certain rules."""

invariants_of = OF_RULES.of_all

STILL_UNDER_WAY = event("still_under_way")
"""The event of an environment for an effect that is slow, perhaps endless. It never occurs in a real run."""

OUTCOMES = {effect.on: effect.outcome for effect in (*declared_effects(), *laboratory_effects())}
"""The effects of the loop and of protocols: the events that start them, and their outcomes."""

STARTS = where(tuple(OUTCOMES))
ENDS = where(tuple(kind for kinds in OUTCOMES.values() for kind in kinds))
OF_LOOP = tuple(effect.on for effect in declared_effects())
LOOP_NEWS = where(OF_LOOP + tuple(kind for started in OF_LOOP for kind in OUTCOMES[started]))
"""Events that begin or end effects of the loop itself; a monitor may score beside them a call that is refused."""

# The events that invariants watch, made once: a monitor is replayed from its start to each of its states.
DRAFT_NEWS = InferenceFinished | AnswerCommitted | RunEnded
EFFECT_NEWS = STARTS | ENDS | RunEnded
START_NEWS = GateApproved | ToolStarted | CallAnswered
PROPOSAL_NEWS = ProposedAction | ActionDescribed | GateApproved | GateRejected
ANSWER_NEWS = AnswerCommitted | CallAnswered | InferenceRequested | RunEnded
OUTCOME_NEWS = GateRejected | ToolStarted | ToolFinished | CallAnswered
VERDICT_NEWS = ActionDescribed | ApprovalAnswered | GateApproved | GateRejected
RIGHTS_NEWS = ActionDescribed | ApprovalAnswered | SandboxLifted | ToolStarted | CallAnswered
APPROVAL_NEWS = where((GateApproved, ToolStarted, CallAnswered, InferenceRequested, RunEnded))
SNAPSHOT_NEWS = where(
    (ProposedAction, GateApproved, GateRejected, ApprovalAnswered, ToolStarted, CallAnswered)
) | where((SnapshotRequested, SnapshotTaken, SnapshotFailed))
CONSENT_NEWS = SnapshotRequested | SnapshotFailed | ApprovalAnswered
ORDER_NEWS = AnswerCommitted | ProposedAction | CallAnswered
INFERENCE_NEWS = where((InferenceRequested, InferenceFinished, InferenceFailed, BackoffElapsed, RunEnded))
FOLLOW_UP_NEWS = FollowUpGiven | RunContinued | RunEnded
REPETITION_NEWS = where((AnswerCommitted, ProposedAction, InferenceRequested, SteeringGiven, RunEnded))
WORK_NEWS = where((PromptGiven, ToolFinished, ProposedAction, InferenceRequested, RunContinued, RunEnded))
OBJECTIVE_NEWS = where((GateApproved, ToolFinished, RunEnded))
ITERATION_NEWS = where((AnswerCommitted, InferenceRequested, ToolFinished, RunEnded))
FACTS_NEWS = (
    ActionDescribed | ApprovalAnswered | FactsConfirmed | SandboxLifted | GateApproved | GateRejected | CallAnswered
)


@OF_RULES.of()
def one_run_after_the_other() -> BThreadBody:
    """A prompt begins a run, `run_ended` comes once and last, and nothing happens until the next prompt."""
    beginnings = where((PromptGiven, HistoryGiven))
    while True:
        said = yield sync(wait_for=ALL)
        require(isinstance(said, PromptGiven | HistoryGiven), f"{said.name} outside of a run")
        if isinstance(said, PromptGiven):
            said = yield sync(wait_for=beginnings | RunEnded)
            require(isinstance(said, RunEnded), f"{said.name} during a run")


@OF_RULES.of()
def one_answer_a_turn() -> BThreadBody:
    """Every answer in the conversation is a draft of this turn as the model wrote it, and only one."""
    drafts: tuple[tuple[object, ...], ...] = ()
    while True:
        said = yield sync(wait_for=DRAFT_NEWS)
        if isinstance(said, InferenceFinished):
            drafts = (*drafts, (said.draft, said.message, said.calls))
        else:
            if isinstance(said, AnswerCommitted):
                answer = (said.draft, said.message, said.calls)
                require(answer in drafts, "an answer is committed that is no draft of this turn, or a second one")
            drafts = ()


@OF_RULES.of()
def ids_of_an_answer_differ() -> BThreadBody:
    """The calls of an answer have different ids: the loop relies on it, and the client renames equal ones."""
    while True:
        answer = yield sync(wait_for=InferenceFinished)
        ids = [call.id for call in answer.calls]
        require(len(set(ids)) == len(ids), f"an answer has two calls of one id: {', '.join(ids)}")


@OF_RULES.of()
def nothing_is_in_flight_at_the_end() -> BThreadBody:
    """Every effect that was started has had its outcome when the run ends."""
    in_flight = 0
    while True:
        said = yield sync(wait_for=EFFECT_NEWS)
        if isinstance(said, RunEnded):
            require(in_flight == 0, f"the run ends while {in_flight} effects are under way")
        else:
            in_flight += 1 if isinstance(said, tuple(OUTCOMES)) else -1


@OF_RULES.of()
def a_run_goes_on() -> BThreadBody:
    """During a run something is under way, or something follows: it never just stands still."""
    while True:
        yield sync(wait_for=PromptGiven)
        in_flight = 0
        said: Event | None = None
        while not isinstance(said, RunEnded):
            said = yield sync(wait_for=EFFECT_NEWS, hot=in_flight == 0)
            in_flight += 1 if isinstance(said, tuple(OUTCOMES)) else -1


@OF_RULES.of("retry, recover_from_overflow, at_most", "retry, recover_from_overflow, iterations_at_most")
def a_run_ends() -> BThreadBody:
    """A run comes to its end, unless something that it waits for never comes back."""
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = STILL_UNDER_WAY
        while not isinstance(said, RunEnded):
            said = yield sync(wait_for=STILL_UNDER_WAY | RunEnded, hot=True)
            if said == STILL_UNDER_WAY:
                said = yield sync(wait_for=~STILL_UNDER_WAY)


@OF_RULES.of("abort_on_request")
def an_abort_ends_the_run() -> BThreadBody:
    """After an abort the run ends, even if something that it waits for never comes back."""
    yield from _leads_to(AbortAsked)


def _leads_to(cause: Any, end: Any = RunEnded) -> BThreadBody:
    while True:
        yield sync(wait_for=cause)
        yield sync(wait_for=end, hot=True)


@OF_RULES.of("abort_on_request")
def nothing_starts_after_abort() -> BThreadBody:
    """After an abort nothing starts, neither a tool nor anything else, and the run does not end as completed."""
    yield from _nothing_starts_after(AbortAsked, STARTS | GateApproved, ("aborted", "failed"))


@OF_RULES.of("stop_on_request")
def nothing_starts_after_stop(after: str = "call") -> BThreadBody:
    """After a stop no turn begins and no user is asked; no call begins unless the step is to be finished.

    Only `complete` completes the run.
    """
    nothing = where((InferenceRequested, BackoffStarted, SummaryRequested, ApprovalAsked))
    started = nothing if after == "step" else STARTS | GateApproved
    yield from _nothing_starts_after(StopAsked, started, ("stopped", "aborted", "failed"), finishes=after == "step")


def _nothing_starts_after(
    asked: type[Event], starts: EventSet, statuses: tuple[str, ...], *, finishes: bool = False
) -> BThreadBody:
    while True:
        yield sync(wait_for=asked)
        said = yield sync(wait_for=starts | RunEnded)
        require(isinstance(said, RunEnded), f"{said.name} after {asked.name}")
        declared = finishes and said.status in ("completed", "limit") and said.reason != "answered"
        require(said.status in statuses or declared, f"the run ends as {said.status!r} after {asked.name}")


NONE_YET: frozenset[ToolCall] = frozenset()
NO_IDS: frozenset[str] = frozenset()
NO_CALLS: tuple[ToolCall, ...] = ()


def with_call(calls: tuple[ToolCall, ...], call: ToolCall) -> tuple[ToolCall, ...]:
    """Return the calls and one more, ordered by id."""
    return tuple(sorted((*without(calls, call), call), key=lambda each: each.id))


@OF_RULES.of()
def starts_were_approved() -> BThreadBody:
    """No tool starts unless exactly that call value was approved, once for each start."""
    approved = NO_CALLS
    while True:
        said = yield sync(wait_for=START_NEWS)
        if isinstance(said, GateApproved):
            approved = with_call(approved, said.call)
        elif isinstance(said, ToolStarted):
            require(said.call in approved, f"{said.call.id} starts, and the gate has not approved it")
            approved = without(approved, said.call)
        else:
            approved = still_open(approved, said.call)


@OF_RULES.of()
def each_proposal_is_decided_once() -> BThreadBody:
    """A proposed action is described, then approved or rejected, once; and only if it was proposed."""
    proposed, described = NONE_YET, NONE_YET
    while True:
        said = yield sync(wait_for=PROPOSAL_NEWS)
        if isinstance(said, ProposedAction):
            require(said.call not in proposed | described, f"{said.call.id} is proposed twice")
            proposed |= {said.call}
        elif isinstance(said, ActionDescribed):
            proposed -= {said.call}
            described |= {said.call}
        else:
            require(said.call in described, f"{said.call.id} is decided twice, or before it was described")
            described -= {said.call}


@OF_RULES.of()
def each_call_is_answered_once() -> BThreadBody:
    """Each call of an answer is answered exactly once, before the next answer, the next inference and the end."""
    unanswered: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=ANSWER_NEWS)
        if isinstance(said, CallAnswered):
            require(said.call in unanswered, f"{said.call} is answered twice, or was never asked for")
            unanswered = without(unanswered, said.call)
        else:
            require(not unanswered, f"{said.name} comes while {', '.join(unanswered)} is not answered")
            unanswered = tuple(call.id for call in said.calls) if isinstance(said, AnswerCommitted) else ()


@OF_RULES.of()
def each_answer_tells_what_happened() -> BThreadBody:
    """A rejected call is answered as rejected and never runs; "ran" is said of those alone that ran to their end."""
    rejected, started, finished = NO_IDS, NO_IDS, NO_IDS
    while True:
        said = yield sync(wait_for=OUTCOME_NEWS)
        if isinstance(said, GateRejected):
            rejected |= {said.call.id}
        elif isinstance(said, ToolStarted):
            require(said.call.id not in rejected, f"{said.call.id} was rejected, and runs")
            started |= {said.call.id}
        elif isinstance(said, ToolFinished):
            started, finished = started - {said.call.id}, finished | {said.call.id}
        else:
            require((said.outcome == "rejected") == (said.call in rejected), _untrue(said, rejected))
            require((said.outcome == "ran") == (said.call in finished), _untrue(said, rejected))
            require(said.call not in started, f"{said.call} is answered while it runs")
            rejected, finished = rejected - {said.call}, finished - {said.call}


@OF_RULES.of("only_whole_calls")
def flawed_calls_do_not_run() -> BThreadBody:
    """A call that came cut off, unreadable, unknown or with wrong arguments is neither judged nor run."""
    while True:
        said = yield sync(wait_for=ProposedAction | ToolStarted)
        require(said.call.flaw is None, f"{said.name} of {said.call.id}, which is {said.call.flaw}")


@OF_RULES.of("by_constitution")
def the_constitution_is_obeyed(judge: Callable[[Action], Verdict]) -> BThreadBody:
    """An action that `judge` denies is rejected, one to ask about needs a yes; others are not rejected."""
    forbidden, questionable, asked_about = NONE_YET, NONE_YET, NONE_YET
    while True:
        said = yield sync(wait_for=VERDICT_NEWS)
        if isinstance(said, ActionDescribed):
            forbidden, questionable = forbidden - {said.call}, questionable - {said.call}
            asked_about -= {said.call}
            level = Level.deny if said.problem is not None else judge(said.facts).level
            if level is Level.deny:
                forbidden |= {said.call}
            elif level is Level.ask:
                questionable |= {said.call}
                asked_about |= {said.call}
        elif isinstance(said, ApprovalAnswered):  # other rules may ask too: each yes counts, and then each no
            questionable = questionable - {said.call} if said.yes else questionable | (asked_about & {said.call})
        else:
            objects = said.call in forbidden | questionable
            if isinstance(said, GateApproved):
                require(said.call not in forbidden, f"{said.call.id} is approved, and the constitution denies it")
                require(not objects, f"{said.call.id} is approved, and the user did not say yes")
            else:
                blamed = any(refusal.bthread == "by_constitution" for refusal in said.refusals)
                require(objects or not blamed, f"{said.call.id} is rejected by a constitution that allows it")
            forbidden, questionable = forbidden - {said.call}, questionable - {said.call}
            asked_about -= {said.call}


@OF_RULES.of("by_constitution")
def rights_were_granted(judge: Callable[[Action], Verdict]) -> BThreadBody:
    """A call has rights beyond its sandbox only after a yes, or a grant; its tool starts with exactly these."""
    confined, granted, lifted = NO_CALLS, NO_CALLS, tuple[SandboxLifted, ...]()
    while True:
        said = yield sync(wait_for=RIGHTS_NEWS)
        if isinstance(said, ActionDescribed):
            confined, granted = without(confined, said.call), without(granted, said.call)
            lifted = tuple(each for each in lifted if each.call != said.call)
            if said.facts.is_confined:
                confined = with_call(confined, said.call)
                granted = with_call(granted, said.call) if judge(said.facts).granted else granted
        elif isinstance(said, ApprovalAnswered) and said.yes:
            granted = with_call(granted, said.call) if said.call in confined else granted
        elif isinstance(said, SandboxLifted):
            require(said.call in granted, f"the sandbox of {said.call.id} is lifted, and the user did not allow it")
            lifted = (*(each for each in lifted if each.call != said.call), said)
        elif isinstance(said, ToolStarted):
            rights = next((each.rights for each in lifted if each.call == said.call), ())
            require(said.rights == rights, f"{said.call.id} starts with other rights than were granted")
        elif isinstance(said, CallAnswered):
            confined, granted = still_open(confined, said.call), still_open(granted, said.call)
            lifted = tuple(each for each in lifted if each.call.id != said.call)


@OF_RULES.of()
def what_starts_was_judged_as_it_is() -> BThreadBody:
    """A call is approved on the facts that were found last, and these were looked up again after each yes of the user.

    Before they are confirmed no sandbox is lifted; a yes to facts that have changed is void.
    """
    known: tuple[tuple[ToolCall, Action], ...] = ()
    unconfirmed = NO_CALLS
    while True:
        said = yield sync(wait_for=FACTS_NEWS)
        if isinstance(said, ActionDescribed | GateRejected):
            found = () if isinstance(said, GateRejected) else ((said.call, said.facts),)
            known = (*(each for each in known if each[0] != said.call), *found)
            unconfirmed = without(unconfirmed, said.call)
        elif isinstance(said, ApprovalAnswered):
            unconfirmed = with_call(unconfirmed, said.call) if said.yes else unconfirmed
        elif isinstance(said, FactsConfirmed):
            unconfirmed = without(unconfirmed, said.call)
        elif isinstance(said, CallAnswered):
            known = tuple(each for each in known if each[0].id != said.call)
            unconfirmed = still_open(unconfirmed, said.call)
        else:
            require(said.call not in unconfirmed, f"{said.name} of {said.call.id} on facts that may have changed")
            if isinstance(said, GateApproved):
                require(
                    (said.call, said.facts) in known, f"{said.call.id} is approved on facts that are not the latest"
                )
                known = without(known, (said.call, said.facts))


@OF_RULES.of("no_start_without_approval")
def what_is_approved_runs() -> BThreadBody:
    """A call that the gate approved runs, or is skipped, or the run ends: nothing else stands in its way."""
    approved = NO_CALLS
    withheld = ""
    while True:
        said = yield sync(wait_for=APPROVAL_NEWS)
        if isinstance(said, GateApproved):
            approved = with_call(approved, said.call)
        elif isinstance(said, ToolStarted):
            approved = without(approved, said.call)
        elif isinstance(said, CallAnswered):
            still_approved = still_open(approved, said.call)
            withheld = said.call if said.outcome == "ended" and still_approved != approved else withheld
            approved = still_approved
        else:
            require(
                isinstance(said, RunEnded) or not withheld, f"{withheld} was approved and did not run; no end follows"
            )
            withheld = ""


@OF_RULES.of("snapshot_before_change")
def changes_can_be_undone() -> BThreadBody:
    """No call that may change files starts before a snapshot that was begun after its approval, or the user's yes.

    It is one snapshot for the calls that were proposed, after the last approval. One that failed holds them until then.
    """
    undecided = unkept = beginning = failed = NONE_YET
    while True:
        said = yield sync(wait_for=SNAPSHOT_NEWS)
        if isinstance(said, ProposedAction):
            undecided |= {said.call} if said.call.category != "read" else NONE_YET
        elif isinstance(said, GateApproved | GateRejected):
            unkept |= undecided & {said.call} if isinstance(said, GateApproved) else NONE_YET
            undecided -= {said.call}
        elif isinstance(said, SnapshotRequested):
            require(not beginning, "two snapshots are taken at once")
            require(not undecided, "a snapshot is taken before the last approval")
            require(unkept, "a snapshot is taken for no call")
            beginning, unkept = unkept, NONE_YET
        elif isinstance(said, SnapshotTaken | SnapshotFailed):
            if isinstance(said, SnapshotFailed) and said.too_large:
                unkept |= beginning
            elif isinstance(said, SnapshotFailed):
                failed |= beginning
            beginning = NONE_YET
        elif isinstance(said, ApprovalAnswered):
            failed -= {said.call} if said.yes else NONE_YET
        elif isinstance(said, ToolStarted):
            require(said.call not in unkept | beginning, f"{said.call.id} starts before the workspace is kept")
            require(said.call not in failed, f"{said.call.id} starts, there is no snapshot, and there was no yes")
        else:
            answered = {call for call in unkept | failed if call.id == said.call}
            unkept, failed = unkept - answered, failed - answered


@OF_RULES.of("snapshot_before_change")
def what_is_left_out_was_allowed() -> BThreadBody:
    """A snapshot leaves out only what made one too large, after a yes of the user."""
    offered: tuple[str, ...] = ()
    allowed = False
    while True:
        said = yield sync(wait_for=CONSENT_NEWS)
        if isinstance(said, SnapshotFailed):
            offered, allowed = said.too_large, False
        elif isinstance(said, ApprovalAnswered):
            allowed = allowed or (said.yes and bool(offered))
        else:
            may_be = offered if allowed else ()
            require(said.leave_out in ((), may_be), "a snapshot leaves out what the user did not allow")


@OF_RULES.of("answers_in_source_order")
def answers_come_in_source_order() -> BThreadBody:
    """Calls are answered in the order in which the model asked for them."""
    unanswered: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | CallAnswered)
        if isinstance(said, AnswerCommitted):
            unanswered = tuple(call.id for call in said.calls)
        else:
            require(said.call not in unanswered[1:], f"{said.call} is answered before {', '.join(unanswered[:1])}")
            unanswered = unanswered[1:]


@OF_RULES.of("one_at_a_time")
def calls_come_one_at_a_time(together: Together = "none") -> BThreadBody:
    """No call is proposed before the earlier ones are answered, except those beside it that may run together with it.

    Where neighbours may, a call that may not is a barrier; where all may, then only if every call of the answer may.
    """
    calls: tuple[ToolCall, ...] = ()
    answered: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=ORDER_NEWS)
        if isinstance(said, AnswerCommitted):
            calls, answered = said.calls, frozenset()
        elif isinstance(said, CallAnswered):
            answered |= {said.call}
            if len(answered) == len(calls):
                calls, answered = (), frozenset()
        else:
            for earlier in _not_beside(said.call, calls, together):
                require(earlier in answered, f"{said.call.id} is proposed before {earlier} is answered")


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


def _untrue(said: CallAnswered, rejected: frozenset[str]) -> str:
    happened = "was rejected" if said.call in rejected else "was not, or has not ended"
    return f"{said.call} is answered as {said.outcome!r}, but it {happened}"


Counted = Callable[[float, Any], float]


def _limited(limit: float, told: str, asked: EventSet, news: EventSet, count: Counted) -> BThreadBody:
    """Fail if `asked` comes after `limit` of `news` in a run; `count` returns the number after one more."""
    number: float = 0
    news = asked | news | RunEnded
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, RunEnded):
            number = 0
        elif contains(asked, said):
            require(number < limit, f"{said.name} after {told}")
        elif number < limit:
            number = min(limit, count(number, said))


ANY_INFERENCE = where(InferenceRequested)


@OF_RULES.of("at_most")
def turns_are_limited(turns: int) -> BThreadBody:
    """A run has at most `turns` committed answers, and asks for no further one."""
    yield from _limited(turns, f"{turns} turns", ANY_INFERENCE, where(AnswerCommitted), lambda taken, _: taken + 1)


@OF_RULES.of("too_many_failures")
def failures_are_limited(limit: int) -> BThreadBody:
    """After `limit` failures in a row nothing more is proposed or asked for in this run."""
    news, asked = where(ToolFinished) | where(CallAnswered, outcome="invalid"), ProposedAction | InferenceRequested
    words = f"{limit} failures in a row"
    yield from _limited(limit, words, asked, news, lambda n, said: n + 1 if said.result.is_error else 0)


@OF_RULES.of("empty_answers")
def empty_answers_are_limited(limit: int) -> BThreadBody:
    """After `limit` answers in a row with neither text nor calls, nothing more is asked for in this run."""
    told, news = f"{limit} empty answers in a row", where(AnswerCommitted)
    yield from _limited(limit, told, ANY_INFERENCE, news, lambda empty, said: empty + 1 if said.is_empty else 0)


@OF_RULES.of("retry")
def attempts_are_limited(attempts: int) -> BThreadBody:
    """A failed inference is tried again after its backoff, `attempts` times in all, and only if that may help.

    Drafts that fail side by side count once: those that come before the backoff of the first has elapsed.
    """
    failures, may_ask = 0, True
    while True:
        said = yield sync(wait_for=INFERENCE_NEWS)
        if isinstance(said, InferenceRequested):
            require(may_ask, f"{said.name} after an inference failed, and without a backoff")
        elif isinstance(said, InferenceFailed):
            if said.reason != "context_length_exceeded":  # see `overflows_are_limited`
                failures, may_ask = failures + may_ask, False
        elif isinstance(said, BackoffElapsed):
            require(failures < attempts, f"{failures} inferences failed, and another one is to follow")
            may_ask = True
        else:
            failures, may_ask = 0, True


@OF_RULES.of("recover_from_overflow")
def overflows_are_limited(summarize: bool) -> BThreadBody:
    """A model whose conversation is too long is asked again only with less of it, at first after a summary."""
    overflows = where(InferenceFailed, reason="context_length_exceeded")
    failures, summed_up, may_ask = 0, False, True
    news = overflows | SummaryFinished | SummaryFailed | InferenceRequested | AnswerCommitted | RunEnded
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, InferenceFailed):
            failures, may_ask = min(failures + 1, MOST_OVERFLOWS + 1), said.retryable
        elif isinstance(said, InferenceRequested):
            require(may_ask, "asked again though there is no less of it")
            require(failures <= MOST_OVERFLOWS, "asked again and again though it is too long")
            require(not failures or not summarize or summed_up, "asked again without a summary")
        elif isinstance(said, SummaryFinished | SummaryFailed):
            summed_up = True
        else:
            failures, summed_up, may_ask = 0, False, True


@OF_RULES.of("only_whole_answers")
def no_run_completes_cut_off() -> BThreadBody:
    """A run completes with no text that was cut off."""
    is_cut_off = False
    while True:
        said = yield sync(wait_for=AnswerCommitted | RunEnded)
        if isinstance(said, AnswerCommitted):
            is_cut_off = bool(said.cut_off)
        else:
            completes = said.status == "completed" and said.reason == "answered"
            require(not (is_cut_off and completes), "completed by half a text")
            is_cut_off = False


CALL_NEWS = ProposedAction | ApprovalAsked | GateApproved | ToolStarted


@OF_RULES.of()
def a_continued_run_asks_again() -> BThreadBody:
    """A run that goes on asks the model again before it completes: the model is told why the run goes on."""
    while True:
        said = yield sync(wait_for=RunContinued | RunEnded)  # checked at each end, also if no rule continues runs
        if isinstance(said, RunContinued):
            said = yield sync(wait_for=NEXT_TURN | RunEnded)
            require(said.name != "run_ended" or said.status != "completed", "the run goes on, and completes as it is")


@OF_RULES.of("skip_when_steered")
def steering_is_heard() -> BThreadBody:
    """After steering no call begins, and the run does not complete, before the model is asked again."""
    while True:
        yield sync(wait_for=SteeringGiven)
        said = yield sync(wait_for=CALL_NEWS | NEXT_TURN | RunEnded)
        if isinstance(said, RunEnded):
            require(said.status != "completed", "the run completes, and the model has not heard the steering")
        else:
            require(isinstance(said, InferenceRequested), f"{said.name} before the model has heard the steering")


@OF_RULES.of("seek_steering", "seek_follow_ups")
def people_are_asked(rule: str) -> BThreadBody:
    """At each joint people are asked, and what they say is given, before anything else begins.

    Except after a stop, and while an earlier find could not be given yet.
    """
    what = {"seek_steering": "steering", "seek_follow_ups": "follow_up"}[rule]
    joints, following = JOINTS[what], NEXT[what]
    given = where({"steering": SteeringGiven, "follow_up": FollowUpGiven}[what])
    found = where((MessagesSought, MessagesFound), what=what)
    owed, unsaid = False, 0
    news = joints | following | found | given | StopAsked | AbortAsked | RunEnded
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, MessagesSought):
            owed = False
        elif isinstance(said, MessagesFound):
            unsaid = len(said.texts)
        elif contains(given, said):
            unsaid = max(0, unsaid - 1)
        elif isinstance(said, StopAsked | AbortAsked):
            owed = False
            yield sync(wait_for=RunEnded)
            unsaid = 0
        elif contains(following, said):
            require(not owed, f"{said.name}, and the user was not asked for {what}")
            require(not (unsaid and contains(UNSAID[what], said)), f"{said.name}, and what was found was not given")
            unsaid = 0 if isinstance(said, RunEnded) else unsaid
        if contains(joints, said) and not unsaid:
            owed = True


@OF_RULES.of("continue_with_follow_ups")
def follow_ups_are_heard(at_once: bool, most: int) -> BThreadBody:
    """A run does not complete while a follow-up waits; it goes on with one of them, or with all `at_once`.

    No more than `most` wait.
    """
    waiting = 0
    while True:
        said = yield sync(wait_for=FOLLOW_UP_NEWS)
        if isinstance(said, FollowUpGiven):
            waiting = 1 if at_once else waiting + 1
            require(waiting <= most, f"{waiting} follow-ups wait; no more than {most} may")
        elif isinstance(said, RunEnded):
            require(said.status != "completed" or not waiting, f"the run completes while {waiting} follow-ups wait")
            waiting = 0
        elif follow_ups_heard(said.refusals) != "none":
            require(waiting, "the run goes on with a follow-up that was not given")
            waiting -= 1


@OF_RULES.of("doom_loop")
def repetitions_are_limited(n: int) -> BThreadBody:
    """The same call is asked for `n` times in a row at most; the last one is not proposed, and ends the run."""
    latest, times = "", 0
    forbidden: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=REPETITION_NEWS)
        if isinstance(said, RunEnded | SteeringGiven):
            latest, times, forbidden = "", 0, ()
        elif isinstance(said, InferenceRequested):
            require(not forbidden, f"{said.name} after the same call {n} times")
        elif isinstance(said, ProposedAction):
            require(said.call.id not in forbidden, f"{said.call.id} is proposed after the same call {n} times")
        else:
            for call in said.calls:
                if call.flaw is None and not call.polls:
                    latest, times = signature(call), times + 1 if signature(call) == latest else 1
                if forbidden or times == n:
                    forbidden = (*forbidden, call.id)


@OF_RULES.of("budget_of_tokens")
def tokens_are_limited(limit: int) -> BThreadBody:
    """After a run has taken `limit` tokens, no model is asked any more."""
    yield from _spending(limit, f"{limit} tokens", lambda usage: usage.tokens)


@OF_RULES.of("budget_of_cost")
def cost_is_limited(limit: float) -> BThreadBody:
    """After a run has cost `limit` dollars, no model is asked any more."""
    yield from _spending(limit, f"${limit:g}", lambda usage: usage.cost or 0.0)


def _spending(limit: float, told: str, measure: Callable[[Usage], float]) -> BThreadBody:
    asked, news = InferenceRequested | SummaryRequested, InferenceFinished | SummaryFinished
    return _limited(limit, told, asked, news, lambda spent, said: spent + measure(said.usage))


@OF_RULES.of("budget_per_turn")
def tokens_of_a_turn_are_limited(limit: int) -> BThreadBody:
    """After a turn of more than `limit` tokens no model is asked any more."""
    told, news = f"a turn of more than {limit} tokens", InferenceFinished | AnswerCommitted

    def count(taken: float, said: Any) -> float:
        return 0 if isinstance(said, AnswerCommitted) else taken + said.usage.tokens

    yield from _limited(limit + 1, told, ANY_INFERENCE, news, count)


@OF_RULES.of("deadline")
def nothing_starts_after_the_deadline() -> BThreadBody:
    """After the deadline nothing starts, neither a tool nor anything else, and the run does not end as completed."""
    yield from _nothing_starts_after(DeadlineReached, STARTS | GateApproved, ("stopped", "aborted", "failed", "limit"))


@OF_RULES.of("deadline")
def a_deadline_ends_the_run() -> BThreadBody:
    """After the deadline the run ends, even if something that it waits for never comes back."""
    yield from _leads_to(DeadlineReached)


@OF_RULES.of("summarize_when_full", "recover_from_overflow")
def a_summary_stands_alone() -> BThreadBody:
    """While a summary is made nothing else of the loop is under way, nothing starts, and the run does not end."""
    in_flight = 0
    while True:
        said = yield sync(wait_for=LOOP_NEWS)
        in_flight += 1 if isinstance(said, OF_LOOP) else -1
        if isinstance(said, SummaryRequested):
            require(in_flight == 1, "a summary is asked for while something else is under way")
            said = yield sync(wait_for=LOOP_NEWS | RunEnded)
            require(isinstance(said, SummaryFinished | SummaryFailed), f"{said.name} while a summary is made")
            in_flight = 0


def _has_run(event: Event, tool: str) -> bool:
    return isinstance(event, ToolFinished) and event.call.tool == tool and not event.result.is_error


@OF_RULES.of("complete_to_finish")
def work_ends_complete(after_objective: bool = False) -> BThreadBody:
    """A text alone does not end work, `complete` does: nothing more is asked for, and its status is the reason."""
    working, status = False, ""
    while True:
        said = yield sync(wait_for=WORK_NEWS)
        if isinstance(said, RunEnded | PromptGiven):
            if isinstance(said, RunEnded) and said.status == "completed":
                require(said.reason == status or not (working or status), f"the run ends as {said.reason!r}")
            working, status = isinstance(said, PromptGiven) and not after_objective, ""
        elif isinstance(said, RunContinued):
            working, status = working or (bool(status) and not after_objective), ""
        elif isinstance(said, ProposedAction | InferenceRequested):
            require(not status, f"{said.name} after the work was declared complete")
        elif _has_run(said, PURSUE):
            working = working or not status
        elif _has_run(said, COMPLETE) and working:
            working, status = False, str(said.call.arguments["status"])


@OF_RULES.of("one_objective")
def objectives_do_not_overlap() -> BThreadBody:
    """No objective is taken while another one is pursued."""
    pursuing = False
    while True:
        said = yield sync(wait_for=OBJECTIVE_NEWS)
        if isinstance(said, GateApproved):
            require(not (pursuing and said.call.tool == PURSUE), "an objective is taken while one is pursued")
        elif isinstance(said, RunEnded) or _has_run(said, COMPLETE):
            pursuing = False
        elif _has_run(said, PURSUE):
            pursuing = True


@OF_RULES.of("iterations_at_most")
def iterations_are_limited(turns: int) -> BThreadBody:
    """From the first objective on a run has at most `turns` committed answers, and as many before it."""
    taken, pursuing = 0, False
    while True:
        said = yield sync(wait_for=ITERATION_NEWS)
        if isinstance(said, RunEnded):
            taken, pursuing = 0, False
        elif isinstance(said, ToolFinished):
            if _has_run(said, PURSUE) and not pursuing:
                taken, pursuing = 0, True
        else:
            require(taken < turns, f"{said.name} after {turns} iterations")
            taken += 1 if isinstance(said, AnswerCommitted) else 0


@OF_RULES.of("stop_when_said")
def wishes_to_stop_are_heard() -> BThreadBody:
    """A message of a user with the letters "stop" in it stops the run."""
    spoken = where((SteeringGiven, FollowUpGiven, ApprovalAnswered), lambda said: "stop" in said.text.lower())
    yield from _leads_to(spoken, StopAsked | RunEnded)
