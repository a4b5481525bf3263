"""What must hold for runs: one at a time, each goes on until its one end, and people are heard."""

from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    GateApproved,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunEnded,
    StopAsked,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
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
from bp import ALL, BThreadBody, Event, EventSet, bthread, event, sync, where

__all__ = [
    "ENDS",
    "OUTCOMES",
    "STARTS",
    "STILL_UNDER_WAY",
    "a_run_ends",
    "a_run_goes_on",
    "an_abort_ends_the_run",
    "nothing_is_in_flight_at_the_end",
    "nothing_starts_after_abort",
    "nothing_starts_after_stop",
    "one_answer_a_turn",
    "one_run_after_the_other",
]

STILL_UNDER_WAY = event("still_under_way")
"""What an environment says when an effect takes its time, perhaps for ever. It never happens in a real run."""

OUTCOMES: dict[type[Event], tuple[type[Event], ...]] = {
    InferenceRequested: (InferenceFinished, InferenceFailed),
    ProposedAction: (ActionDescribed,),
    ApprovalAsked: (ApprovalAnswered,),
    ToolStarted: (ToolFinished,),
    BackoffStarted: (BackoffElapsed,),
    MessagesSought: (MessagesFound,),
    SummaryRequested: (SummaryFinished, SummaryFailed),
    ScoreRequested: (ScoreGiven,),
    AuditRequested: (AuditGiven,),
    ChanceRequested: (ChanceDrawn,),
    LedgerRequested: (LedgerGiven,),
}
"""The effects of the loop and of protocols: what starts one, and with what it comes back."""

STARTS = where(tuple(OUTCOMES))
ENDS = where(tuple(kind for kinds in OUTCOMES.values() for kind in kinds))


@bthread
def one_run_after_the_other() -> BThreadBody:
    """A prompt begins a run, `run_ended` comes once and last, and nothing happens until the next prompt."""
    beginnings = where((PromptGiven, HistoryGiven))
    while True:
        said = yield sync(wait_for=ALL)
        assert isinstance(said, PromptGiven | HistoryGiven), f"{said.name} outside of a run"
        if isinstance(said, PromptGiven):
            said = yield sync(wait_for=beginnings | RunEnded)
            assert isinstance(said, RunEnded), f"{said.name} during a run"


@bthread
def one_answer_a_turn() -> BThreadBody:
    """What enters the conversation is a draft of this turn as the model wrote it, and only one."""
    drafts: tuple[tuple[object, ...], ...] = ()
    while True:
        said = yield sync(wait_for=InferenceFinished | AnswerCommitted | RunEnded)
        if isinstance(said, InferenceFinished):
            drafts = (*drafts, (said.draft, said.message, said.calls))
        else:
            if isinstance(said, AnswerCommitted):
                answer = (said.draft, said.message, said.calls)
                assert answer in drafts, "an answer is committed that is no draft of this turn, or a second one"
            drafts = ()


@bthread
def nothing_is_in_flight_at_the_end() -> BThreadBody:
    """Whatever an effect was started for has come back when the run ends."""
    in_flight = 0
    while True:
        said = yield sync(wait_for=STARTS | ENDS | RunEnded)
        if isinstance(said, RunEnded):
            assert in_flight == 0, f"the run ends while {in_flight} effects are under way"
        else:
            in_flight += 1 if isinstance(said, tuple(OUTCOMES)) else -1


@bthread
def a_run_goes_on() -> BThreadBody:
    """During a run something is under way, or something follows: it never just stands still."""
    while True:
        yield sync(wait_for=PromptGiven)
        in_flight = 0
        said: Event | None = None
        while not isinstance(said, RunEnded):
            said = yield sync(wait_for=STARTS | ENDS | RunEnded, hot=in_flight == 0)
            in_flight += 1 if isinstance(said, tuple(OUTCOMES)) else -1


@bthread
def a_run_ends() -> BThreadBody:
    """A run comes to its end, unless something that it waits for never comes back."""
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = STILL_UNDER_WAY
        while not isinstance(said, RunEnded):
            said = yield sync(wait_for=STILL_UNDER_WAY | RunEnded, hot=True)
            if said == STILL_UNDER_WAY:
                said = yield sync(wait_for=~STILL_UNDER_WAY)


@bthread
def an_abort_ends_the_run() -> BThreadBody:
    """After an abort the run ends, even if something that it waits for never comes back."""
    while True:
        yield sync(wait_for=AbortAsked)
        yield sync(wait_for=RunEnded, hot=True)


@bthread
def nothing_starts_after_abort() -> BThreadBody:
    """After an abort nothing starts, neither a tool nor anything else, and the run does not end as completed."""
    yield from _nothing_starts_after(AbortAsked, STARTS | GateApproved, ("aborted", "failed"))


@bthread
def nothing_starts_after_stop(after: str = "call") -> BThreadBody:
    """After a stop no turn begins and nobody is asked; no call begins unless the step is to be finished.

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
        assert isinstance(said, RunEnded), f"{said.name} after {asked.name}"
        declared = finishes and said.status in ("completed", "limit") and said.reason != "answered"
        assert said.status in statuses or declared, f"the run ends as {said.status!r} after {asked.name}"
