"""Everything that can happen in a run, in the order in which it usually does.

One class per row of the vocabulary; the names in snake case are the `name`s in the log. External events are posted by
users or by effects; b-threads request the others (`agent/threads/`).
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen, validators

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import (
    IF_ANY,
    AssistantMessage,
    FailureReason,
    Image,
    Message,
    StopReason,
    ToolResult,
    Usage,
)
from bp import Event, Refusals
from constitution import Action

__all__ = [
    "AbortAsked",
    "ActionChanged",
    "ActionDescribed",
    "AnswerCommitted",
    "ApprovalAnswered",
    "ApprovalAsked",
    "BackoffElapsed",
    "BackoffStarted",
    "CallAnswered",
    "CompletionDeclared",
    "DeadlineReached",
    "DeadlineSet",
    "DraftsRefused",
    "DraftsSettled",
    "FactsConfirmed",
    "FactsRequested",
    "FollowUpGiven",
    "GateApproved",
    "GateRejected",
    "HistoryGiven",
    "InferenceFailed",
    "InferenceFinished",
    "InferenceRequested",
    "MessagesFound",
    "MessagesSought",
    "OfRight",
    "OwnerEnded",
    "OwnerStarted",
    "PromptGiven",
    "ProposedAction",
    "Question",
    "RightAnswered",
    "RightAsked",
    "RightGranted",
    "RightRefused",
    "RightRequested",
    "RightsDeferred",
    "RuleGranted",
    "RunContinued",
    "RunEnded",
    "SandboxLifted",
    "SnapshotFailed",
    "SnapshotRequested",
    "SnapshotTaken",
    "SteeringGiven",
    "StopAsked",
    "SummaryFailed",
    "SummaryFinished",
    "SummaryRequested",
    "ToolFinished",
    "ToolStarted",
]

CallOutcome = Literal["ran", "rejected", "invalid", "skipped", "ended"]
NO_USAGE = Usage()
RunStatus = Literal["completed", "limit", "doom_loop", "failed", "stopped", "aborted"]


# Messages of users: external events.


@frozen
class HistoryGiven(Event):
    """An earlier conversation to continue."""

    messages: tuple[Message, ...]


@frozen
class PromptGiven(Event):
    """The user gives a task, perhaps with images; a run begins."""

    text: str
    images: tuple[Image, ...] = field(default=(), metadata=IF_ANY)


@frozen
class SteeringGiven(Event):
    """The user steers the run: the model reads this before anything else begins."""

    text: str
    images: tuple[Image, ...] = field(default=(), metadata=IF_ANY)


@frozen
class FollowUpGiven(Event):
    """The user asks for more, to be done after the current task."""

    text: str
    images: tuple[Image, ...] = field(default=(), metadata=IF_ANY)


@frozen
class StopAsked(Event):
    """Finish what runs, then end (S1 8.1)."""

    text: str = ""


@frozen
class AbortAsked(Event):
    """End everything now (S0 5.2)."""

    text: str = ""


@frozen
class MessagesSought(Event):
    """A hook is asked for messages of users."""

    what: Literal["steering", "follow_up"]


@frozen
class MessagesFound(Event):
    """The messages from the hook: steering or follow-ups, which are given next."""

    what: Literal["steering", "follow_up"]
    texts: tuple[str, ...] = ()


@frozen
class DeadlineSet(Event):
    """The timer of the run starts; the run has `seconds`."""

    seconds: float


@frozen
class DeadlineReached(Event):
    """The time of the run is over."""

    seconds: float


# The model's turn.


@frozen(cache_hash=True)
class InferenceRequested(Event):
    """The model is asked for a draft; `d0` is the loop's own."""

    draft: str = "d0"
    role: str = "agent"
    note: str = ""


@frozen(cache_hash=True)
class InferenceFinished(Event):
    """The model gave a draft: its message as it came, and the calls in it, read and numbered by us.

    `duration`: from the request to the end of the answer, in milliseconds; 0 in logs of versions that did not measure.
    """

    draft: str
    message: AssistantMessage
    calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    duration: float = field(default=0.0, metadata=IF_ANY)


@frozen
class InferenceFailed(Event):
    """The model gave no draft; `retry_after`: seconds, when the server named a time. `reason`: that of the run's end,
    where it is more precise than "inference_failed".
    """

    draft: str
    error: str
    retryable: bool = False
    retry_after: float | None = None
    reason: FailureReason = field(default="", metadata=IF_ANY)


@frozen
class BackoffStarted(Event):
    """The next attempt waits; `attempt` counts the failures in a row."""

    attempt: int
    retry_after: float | None = None


@frozen
class BackoffElapsed(Event):
    """The wait before the next attempt is over; `seconds` is how long it was."""

    attempt: int
    seconds: float


@frozen
class DraftsSettled(Event):
    """All drafts of the turn have come; protocols block this while they want more. Without any, the turn has failed."""

    drafts: tuple[str, ...] = ()


@frozen(cache_hash=True)
class AnswerCommitted(Event):
    """This draft is the answer: it enters the conversation and its calls are carried out.

    `cut_off`: the stop reason of an answer that was cut off; empty for a whole one.
    """

    draft: str
    message: AssistantMessage
    calls: tuple[ToolCall, ...] = ()
    cut_off: str = field(default="", metadata=IF_ANY)

    @property
    def is_empty(self) -> bool:
        """True if the text is blank and there is no call."""
        return not self.calls and not self.message.text.strip()


@frozen
class DraftsRefused(Event):
    """Every draft of the turn was refused."""

    refusals: Refusals


# The context.


@frozen
class SummaryRequested(Event):
    """A model is asked to summarize the older part of the conversation, to make room; this is no draft."""

    role: str = "summarizer"


@frozen
class SummaryFinished(Event):
    """The summary that the model is shown in place of the older messages; the conversation keeps everything."""

    text: str
    usage: Usage = Usage()


@frozen
class SummaryFailed(Event):
    """There is no summary, and why. Messages that do not fit are left out."""

    error: str


# One call.


@frozen(cache_hash=True)
class ProposedAction(Event):
    """The model's call is proposed."""

    call: ToolCall


@frozen
class ActionDescribed(Event):
    """The facts of a call, as found on disk: resolved paths and executables; or the problem with finding them."""

    call: ToolCall
    facts: Action
    problem: str | None = None


@frozen
class ApprovalAsked(Event):
    """The user is asked whether the call may run."""

    call: ToolCall
    question: str


@frozen
class ApprovalAnswered(Event):
    """The answer to a question; `text` is the answer instead of yes, `present` is false when no user was present."""

    call: ToolCall
    yes: bool
    text: str = ""
    present: bool = True


@frozen(cache_hash=True)
class SandboxLifted(Event):
    """This call alone may do more than its sandbox allows: the user granted it, now or before.

    rights: "network", "write PATH", or "unconfined".
    """

    call: ToolCall
    rights: tuple[str, ...]


@frozen(cache_hash=True)
class GateApproved(Event):
    """The gate lets the call through, on these facts."""

    call: ToolCall
    facts: Action


@frozen
class GateRejected(Event):
    """The gate rejects the call, with the refusing b-threads and their reasons."""

    call: ToolCall
    refusals: Refusals


@frozen(cache_hash=True)
class ToolStarted(Event):
    """The tool runs; these are its only rights beyond its sandbox."""

    call: ToolCall
    rights: tuple[str, ...] = field(default=(), metadata=IF_ANY)


@frozen
class ToolFinished(Event):
    """The tool is done. `usage` in the details: the tokens of models within the tool, such as a subagent's."""

    call: ToolCall
    result: ToolResult

    @property
    def usage(self) -> Usage:
        """The tokens that models took within the tool."""
        told = self.result.details.get("usage")
        if not isinstance(told, Mapping):
            return NO_USAGE
        taken, given, cost = (told.get(name) for name in ("input_tokens", "output_tokens", "cost"))
        return Usage(_counted(taken), _counted(given), cost if isinstance(cost, int | float) and cost > 0 else None)


def _counted(number: object) -> int:
    return number if isinstance(number, int) and number > 0 else 0


@frozen(cache_hash=True)
class CallAnswered(Event):
    """The one result that the model will see for the call with the id `call`, and how it came about.

    outcome: "ran", "rejected" by the gate, "invalid" (cut off, unreadable, unknown or with wrong arguments),
    "skipped", or "ended" with the run.
    """

    call: str
    result: ToolResult
    outcome: CallOutcome = "ran"


# Questions of b-threads to effects.


@frozen
class Question(Event):
    """A b-thread asks an effect for something; kinds extend it. A run that stops asks no further questions."""


@frozen(cache_hash=True)
class FactsRequested(Question):
    """The user said yes to the call, perhaps after a while: its facts are looked up again.

    judged: the facts in the question. times: how often they have changed already.
    """

    call: ToolCall
    judged: Action
    times: int = field(default=0, metadata=IF_ANY)


@frozen
class FactsConfirmed(Event):
    """The facts of the call are still those that were judged."""

    call: ToolCall


@frozen
class ActionChanged(ActionDescribed):
    """The facts of the call have changed since it was judged: it is judged again, and a yes to it is void."""

    changes: tuple[str, ...] = ()
    times: int = field(default=0, metadata=IF_ANY)


@frozen
class SnapshotRequested(Question):
    """The workspace is to be kept as it is now, before calls that may change files start.

    leave_out: paths that this snapshot and later ones leave out, with the user's consent.
    """

    leave_out: tuple[str, ...] = field(default=(), metadata=IF_ANY)


@frozen
class SnapshotTaken(Event):
    """The workspace is kept under the name `snapshot`.

    made_again: folders that are no part of it, since a tool can make them again. unkept: what else is no part of it,
    and why. told: what the user should know besides.
    """

    snapshot: str
    made_again: tuple[str, ...] = field(default=(), metadata=IF_ANY)
    unkept: tuple[str, ...] = field(default=(), metadata=IF_ANY)
    told: tuple[str, ...] = field(default=(), metadata=IF_ANY)


@frozen
class SnapshotFailed(Event):
    """The workspace is not kept, or not all of it, and why. too_large: the paths without which it could be."""

    error: str
    too_large: tuple[str, ...] = field(default=(), metadata=IF_ANY)


# Rights beyond the sandbox, asked for when they are used.

RIGHT = re.compile(r"as-is|(connect|read|write|login) \S.*", re.DOTALL)
"""The form of a right: `connect HOST[:PORT]`, `read PATH`, `write PATH`, `login NAME`, or `as-is`, which is all."""


@frozen
class OwnerStarted(Event):
    """A process that may ask for rights runs, and is no call: `background N`, `server NAME` or `terminal N`."""

    owner: str


@frozen
class OwnerEnded(Event):
    """The process that may ask for rights has ended, or died with our process."""

    owner: str


@frozen(cache_hash=True)
class OfRight(Event):
    """Something about a right of an owner, which is a process or a call, by its id; kinds extend it."""

    owner: str
    right: str = field(validator=validators.matches_re(RIGHT))


@frozen(cache_hash=True)
class RightRequested(OfRight):
    """The owner needs the right now; exactly one of `RightGranted` and `RightRefused` follows."""


@frozen(cache_hash=True)
class RightAsked(OfRight):
    """The user is asked whether the owner may have the right."""

    question: str


@frozen(cache_hash=True)
class RightAnswered(OfRight):
    """The answer to a question about a right; `text` and `present` are as in `ApprovalAnswered`.

    lasts: "once" until the owner ends, "run" until the run ends, "always" also in later ones, as a rule of the user.
    """

    yes: bool
    text: str = ""
    present: bool = True
    lasts: Literal["once", "run", "always"] = "once"


@frozen(cache_hash=True)
class RightGranted(OfRight):
    """The owner has the right."""


@frozen(cache_hash=True)
class RightRefused(OfRight):
    """The owner does not get the right, with the refusing b-threads and their reasons."""

    refusals: Refusals


@frozen
class RightsDeferred(Event):
    """No user was present to decide these rights of the owner; the run rests at its end until they are decided."""

    owner: str
    rights: tuple[str, ...]


@frozen
class RuleGranted(Event):
    """The user has granted a rule, a line of the rules that hold in later runs, too."""

    rule: str


# The end.


@frozen
class CompletionDeclared(Event):
    """The agent has called `complete`, with a status and a description of the result (S1 2.3)."""

    status: str
    text: str


@frozen
class RunContinued(Event):
    """The run would have completed, but b-threads refused that.

    Each `because` enters the conversation as a user message, or the next follow-up does (`agent.vocabulary.reasons`).
    """

    refusals: Refusals


@frozen
class RunEnded(Event):
    """The run is over: its status, the reason, and the final text."""

    status: RunStatus
    reason: str
    text: str = ""
    result: Any = None
