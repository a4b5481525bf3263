"""Reasons of the loop's b-threads: the values that they give as `because`, and their wording for the model."""

from collections.abc import Iterable
from typing import Literal

from attrs import frozen

from agent.vocabulary.events import CallAnswered, CallOutcome, RunEnded, RunStatus
from agent.vocabulary.messages import ToolResult
from bp import Refusal, Refusals
from constitution import Verdict

Disclosure = Literal["none", "category", "full"]
"""The part of a refusal that the model is told: a harmful model learns from each reason, and retries."""

DEADLINE = "deadline"
"""The reason of an ending by the clock."""

SEVERITY = ("aborted", "completed", "stopped", DEADLINE, "failed", "doom_loop", "limit")
"""Endings by precedence, the strongest first. A run that declared itself complete is complete, though a limit was
reached in the same turn; and a run that the clock cuts off fails, which is no reason of its own.
"""


@frozen
class Ending:
    """The run should end: with this status, for this reason, with this final text."""

    status: RunStatus
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or self.reason


@frozen
class Unfinished:
    """The run should continue; the text goes to the model as a user message."""

    text: str

    def __str__(self) -> str:
        return self.text


@frozen
class CutOff:
    """The answer that would complete the run was cut off, and why. It ends the run as failed, with its text, unless the
    run goes on for other reasons: then the model is told.
    """

    reason: str
    answer: str

    def __str__(self) -> str:
        return f"Your answer was cut off ({self.reason})."


@frozen
class Flaw:
    """The call itself cannot be run: cut off, unreadable, unknown, or with wrong arguments."""

    text: str

    def __str__(self) -> str:
        return self.text


@frozen
class Declined:
    """The user was asked about the call and did not say yes; `present` is false when no user was there to ask."""

    verdict: Verdict
    text: str = ""
    present: bool = True

    def __str__(self) -> str:
        said = f"the user said no ({self.text})" if self.text else "the user said no"
        return f"{said if self.present else 'no person present'}: {self.verdict}"


@frozen
class Steered:
    """A user steered, and the model has not been shown the message yet; the conversation has its text."""

    def __str__(self) -> str:
        return "Skipped due to queued user message."  # S2


@frozen
class FollowUpWaits:
    """A follow-up of a user waits; the conversation has its text. `at_once`: all that wait are given together, else one
    at a time.
    """

    at_once: bool = False

    def __str__(self) -> str:
        return "a follow-up waits"


@frozen
class NotKept:
    """The call may change files, no snapshot could be taken before it, and the user did not say yes to go without."""

    error: str
    text: str = ""
    present: bool = True

    def __str__(self) -> str:
        said = f"the user said no ({self.text})" if self.text else "the user said no"
        return f"{said if self.present else 'no person present'}: no snapshot could be taken, {self.error}"


OF_THE_CALL_ONLY = (Steered, NotKept)  # reasons for which a call is skipped, and the run goes on
OF_THE_RUN = (Ending, *OF_THE_CALL_ONLY)  # reasons that are not about a call itself: it is skipped, not rejected


def not_run(call: str, refusals: Refusals, disclosure: Disclosure = "full") -> CallAnswered:
    """Return the answer to a call that never reached the gate, or never started: the reason, in one sentence. Flaws of
    the call itself come first, then objections of rules; else it is skipped, because the run was about to end or a user
    steered.
    """
    flaws = [refusal for refusal in refusals if isinstance(refusal.because, Flaw)]
    if flaws:
        return CallAnswered(call, ToolResult(f"not executed: {_reasons(flaws)}", is_error=True), "invalid")
    goes_on = all(isinstance(refusal.because, OF_THE_CALL_ONLY) for refusal in refusals)
    return _refused(call, refusals, disclosure, "skipped" if goes_on else "ended")


def rejected(call: str, refusals: Refusals, disclosure: Disclosure = "full") -> CallAnswered:
    """Return the answer to a call that the gate rejected: who refused, by which rule, and why.

    Where no b-thread objects to the call itself it was skipped, and the answer says so.
    """
    return _refused(call, refusals, disclosure, "rejected")


def _refused(call: str, refusals: Refusals, disclosure: Disclosure, outcome: CallOutcome) -> CallAnswered:
    """Return the answer with the objections to the call itself, or else with all reasons, as one that is skipped."""
    objections = [refusal for refusal in refusals if not isinstance(refusal.because, OF_THE_RUN)]
    reasons = names_and_reasons(objections)
    if not objections:
        text = f"skipped: {_reasons(refusals)}"
    elif disclosure == "none":
        text = "rejected: this call is not allowed"
    elif disclosure == "category":
        text = f"rejected: {', '.join(sorted({_category(refusal.because) for refusal in objections}))}"
    elif any(isinstance(refusal.because, Declined) and not refusal.because.present for refusal in objections):
        text = f"denied: no person present ({reasons})"
    else:
        text = f"rejected: {reasons}"
    return CallAnswered(call, ToolResult(text, is_error=True), outcome)


def _category(because: object) -> str:
    if isinstance(because, Declined):
        return "declined by a person" if because.present else "no person present"
    return str(getattr(because, "category", "") or "not allowed here")


def worst_ending(refusals: Refusals) -> RunEnded | None:
    """Return the end of the run that the refusals ask for: the worst of their endings; None if they ask for none."""
    worst = worst_of(refusals)
    return None if worst is None else RunEnded(worst.status, worst.reason, worst.text)


def cut_off_ending(refusals: Refusals) -> RunEnded | None:
    """Return the end of a run that nothing but a cut-off answer keeps from completing."""
    cut_off = [refusal.because for refusal in refusals if isinstance(refusal.because, CutOff)]
    return RunEnded("failed", cut_off[0].reason, cut_off[0].answer) if 0 < len(cut_off) == len(refusals) else None


def worst_of(refusals: Refusals) -> Ending | None:
    """Return the worst of the endings for which something was refused; None without one."""
    endings = [refusal.because for refusal in _sorted(refusals) if isinstance(refusal.because, Ending)]
    return min(endings, key=_severity, default=None)


def _severity(ending: Ending) -> int:
    return SEVERITY.index(DEADLINE if ending.reason == DEADLINE else ending.status)


def words_to_the_model(refusals: Refusals) -> tuple[str, ...]:
    """Return the messages for the model from the b-threads that refused the completion of a run. Messages of users are
    not among them: the conversation has these.
    """
    protocols = (refusal for refusal in _sorted(refusals) if not isinstance(refusal.because, Steered | FollowUpWaits))
    return tuple(words for refusal in protocols if (words := str(refusal.because)).strip())


def follow_ups_heard(refusals: Refusals) -> Literal["none", "one", "all"]:
    """Return how many of the waiting follow-ups are given when a run continues: "none" while another b-thread refuses
    completion, since follow-ups come after the current task.
    """
    waiting = [refusal.because for refusal in refusals if isinstance(refusal.because, FollowUpWaits)]
    if not waiting or len(waiting) < len(refusals):
        return "none"
    return "all" if any(follow_up.at_once for follow_up in waiting) else "one"


def _reasons(refusals: Iterable[Refusal]) -> str:
    reasons = list(dict.fromkeys(str(refusal.because) for refusal in _sorted(refusals)))
    return "; ".join([*(reason.removesuffix(".") for reason in reasons[:-1]), *reasons[-1:]])


def names_and_reasons(refusals: Iterable[Refusal]) -> str:
    """Return the refusing b-threads, each with its reason, in one line."""
    return "; ".join(f"{refusal.bthread}: {refusal.because}" for refusal in _sorted(refusals))


def _sorted(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Order refusals by b-thread and reason: results must not depend on the order of b-threads."""
    return sorted(refusals, key=lambda refusal: (refusal.bthread, str(refusal.because)))
