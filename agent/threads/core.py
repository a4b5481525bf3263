"""The b-threads without which there is no loop: sessions, the conversation, drafts, one call, and the gate."""

from functools import lru_cache, partial
from itertools import repeat
from operator import attrgetter

from agent.vocabulary.calls import ToolCall, without
from agent.vocabulary.events import (
    ActionChanged,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    CompletionDeclared,
    DraftsRefused,
    DraftsSettled,
    FactsConfirmed,
    FactsRequested,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SandboxLifted,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import CUT_OFF, StopReason
from agent.vocabulary.reasons import Disclosure, cut_off_ending, names_and_reasons, not_run, rejected, worst_ending
from bp import BThread, BThreadBody, Event, Refusals, Sync, bthread, start, sync, where
from constitution import Action


@bthread
def session() -> BThreadBody:
    """Allow only a prompt (or an earlier history) between runs; a prompt waits for the end of the run before it."""
    beginnings = where((PromptGiven, HistoryGiven))
    while True:
        yield sync(wait_for=PromptGiven, block=~beginnings)
        yield sync(wait_for=RunEnded, block=beginnings)


DRAFT, ID = attrgetter("draft"), attrgetter("id")

OWN = "d0"
"""The name of the loop's own first draft of each turn; protocols ask for all others."""

DRAFT_NEWS = InferenceRequested | InferenceFinished | InferenceFailed
NEXT_TURN = where(InferenceRequested, draft=OWN)
OTHERS = InferenceRequested & ~NEXT_TURN
TOO_LATE = "the drafts of this turn have settled"
ASKED_ALREADY = "it was asked for already in this turn"
FIRST_ASKED = sync(wait_for=NEXT_TURN, refuse=OTHERS, because=TOO_LATE)  # used at every turn, and so made once


@bthread
def choose() -> BThreadBody:
    """Commit the first draft of each turn that no b-thread refuses, when all that were asked for have settled."""
    while True:
        said = yield FIRST_ASKED
        outstanding: tuple[str, ...] = (OWN,)
        drafts: tuple[InferenceFinished, ...] = ()
        while not isinstance(said, DraftsSettled):
            said = yield collecting(outstanding, tuple(map(DRAFT, drafts)))
            if isinstance(said, InferenceRequested):
                outstanding = (*outstanding, said.draft)
            elif isinstance(said, (InferenceFinished, InferenceFailed)):
                outstanding = without(outstanding, said.draft)
            if isinstance(said, InferenceFinished):
                drafts = (*drafts, said)
        if drafts:
            answers = [*map(committed, drafts)]
            yield sync(request=answers, otherwise=DraftsRefused, refuse=InferenceRequested, because=TOO_LATE)


@lru_cache(maxsize=1024)
def collecting(outstanding: tuple[str, ...], finished: tuple[str, ...]) -> Sync:
    """Return the statement with drafts of these names; the same object for the same names, which come at every turn."""
    return sync(
        request=() if outstanding else DraftsSettled(finished),
        wait_for=DRAFT_NEWS,
        refuse=[where(InferenceRequested, draft=name) for name in (*outstanding, *finished)],
        because=ASKED_ALREADY,
    )


def committed(draft: InferenceFinished) -> AnswerCommitted:
    """Return the commitment to a draft."""
    return AnswerCommitted(draft.draft, draft.message, draft.calls, cut_off_by(draft.stop_reason))


def cut_off_by(stop_reason: StopReason) -> str:
    """Return the stop reason of an answer that was cut off, an empty text for any other."""
    return stop_reason if stop_reason in CUT_OFF else ""


DESCRIPTION = sync(wait_for=ActionDescribed)


@bthread
def gate() -> BThreadBody:
    """Request the approval of each action as soon as it is described, of several at a time if need be."""
    while True:
        described = yield DESCRIPTION
        changed = described.times + 1 if isinstance(described, ActionChanged) else 0
        yield start(put_up(described.call, described.facts, changed))


@bthread(name="gate")
def put_up(call: ToolCall, facts: Action, changed: int = 0) -> BThreadBody:
    """Approve the call unless a b-thread refuses; then reject it, with b-threads and reasons. A block only delays it.

    After each yes of a user the facts are looked up again. If they have changed, this b-thread ends: the call was
    described again, and is put up with its new facts. It also ends when another b-thread has rejected the call because
    a question about it was refused.
    """
    news = where((GateRejected, ApprovalAnswered), call=call)
    approval, rejection = GateApproved(call, facts), partial(GateRejected, call)
    while True:
        said = yield sync(request=approval, otherwise=rejection, wait_for=news)
        if not isinstance(said, ApprovalAnswered):
            return
        if said.yes and not isinstance((yield from looked_up_again(call, facts, changed)), FactsConfirmed):
            return


MOST_CHANGES = 2
"""The number of times that the facts of a call may change while a user is asked about it."""


def looked_up_again(call: ToolCall, facts: Action, changed: int) -> BThreadBody:
    """Have the facts of a call looked up; return these, or the rejection if the lookup is refused.

    Meanwhile the call is not asked about, and keeps its sandbox.
    """
    held, rejected = where((ApprovalAsked, SandboxLifted), call=call), where(GateRejected, call=call)
    said = yield sync(
        request=FactsRequested(call, facts, changed),
        otherwise=partial(GateRejected, call),
        refuse=where(FactsRequested, call=call, times=MOST_CHANGES),
        because="what it would touch changes again and again while the user is asked",
        block=held,
        wait_for=rejected,
    )
    if isinstance(said, GateRejected):
        return said
    return (yield sync(wait_for=where((FactsConfirmed, ActionChanged), call=call), block=held | rejected))


@bthread
def carry_out(call: ToolCall, disclosure: Disclosure = "full") -> BThreadBody:
    """Propose `call`, wait for the gate, run the tool, answer: exactly one answer for each call. disclosure: how much
    the answer says about the reasons of a refusal.
    """

    def unexecuted(refusals: Refusals) -> CallAnswered:
        return not_run(call.id, refusals, disclosure)

    said = yield sync(request=ProposedAction(call), otherwise=unexecuted)
    if isinstance(said, CallAnswered):
        return
    news = where((SandboxLifted, ActionChanged, GateApproved, GateRejected), call=call)
    said = yield sync(wait_for=news)
    rights: tuple[str, ...] = ()
    while isinstance(said, (SandboxLifted, ActionChanged)):
        rights = said.rights if isinstance(said, SandboxLifted) else ()
        said = yield sync(wait_for=news)
    if isinstance(said, GateRejected):
        yield sync(request=rejected(call.id, said.refusals, disclosure))
        return
    answered = where(CallAnswered, call=call.id)  # by a b-thread that holds the start
    said = yield sync(request=ToolStarted(call, rights), otherwise=unexecuted, wait_for=answered)
    if isinstance(said, CallAnswered):
        return
    finished = yield sync(wait_for=where(ToolFinished, call=call))
    yield sync(request=CallAnswered(call.id, finished.result))


END_OF_TURN = sync(wait_for=AnswerCommitted | DraftsRefused | where(DraftsSettled, drafts=()))
ANSWER = sync(wait_for=CallAnswered)


@bthread
def converse(disclosure: Disclosure = "full") -> BThreadBody:
    """Drive one run after the other, each from its prompt to its one `run_ended`.

    disclosure: how much the model is told about the reasons of a refusal.
    """
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = RunContinued(Refusals())
        while not isinstance(said, RunEnded):
            said = yield INFERENCE
            if isinstance(said, InferenceRequested):
                said = yield END_OF_TURN  # without any draft the inference is repeated unless a b-thread refuses
            if isinstance(said, CompletionDeclared):
                said = yield from completed(said.status, said.text)
            elif isinstance(said, DraftsRefused):
                said = yield sync(request=no_draft_left(said), otherwise=ended_instead)
            elif isinstance(said, AnswerCommitted) and said.calls:
                said = yield from have_carried_out(said, disclosure)
            elif isinstance(said, AnswerCommitted) and not said.is_empty:
                said = yield from completed("answered", said.message.text)


def completed(reason: str, text: str) -> BThreadBody:
    """End the run as completed, or continue it if a b-thread refuses that."""
    return (yield sync(request=RunEnded("completed", reason, text), otherwise=continued_instead))


def have_carried_out(answer: AnswerCommitted, disclosure: Disclosure) -> BThreadBody:
    """Start the calls of an answer and wait until each is answered."""
    yield start(*map(carry_out, answer.calls, repeat(disclosure)))
    unanswered = tuple(map(ID, answer.calls))
    while unanswered:
        answered = yield ANSWER
        unanswered = without(unanswered, answered.call)
    return answered


def ended_instead(refusals: Refusals) -> RunEnded | CompletionDeclared:
    """Turn the refusals of an inference into the end of the run; one that is complete may still be continued."""
    ending = worst_ending(refusals) or RunEnded("failed", "inference_refused", names_and_reasons(refusals))
    return CompletionDeclared(ending.reason, ending.text) if ending.status == "completed" else ending


INFERENCE = sync(request=InferenceRequested(), otherwise=ended_instead)


def continued_instead(refusals: Refusals) -> RunEnded | RunContinued:
    """Turn the refusals of completion into another end, or into a continuation."""
    return worst_ending(refusals) or cut_off_ending(refusals) or RunContinued(refusals)


def no_draft_left(refused: DraftsRefused) -> RunEnded:
    """End the run because every draft of the turn was refused: with the ending among the reasons, if there is one."""
    text = f"Every draft was refused: {names_and_reasons(refused.refusals)}"
    return worst_ending(refused.refusals) or RunEnded("failed", "drafts_refused", text)


def core(disclosure: Disclosure = "full") -> tuple[BThread, ...]:
    """Return the b-threads of the core; `disclosure`: how much the model is told about refused calls."""
    return (session(), converse(disclosure), choose(), gate())


CORE = core()
"""The core with which the model is told why a call was refused."""
