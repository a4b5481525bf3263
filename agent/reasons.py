"""Why b-threads of the loop refuse: the values they give as `because`, and how these read to the model."""

from attrs import frozen

from agent.events import CallAnswered, CallOutcome, RunEnded, RunStatus
from bp import Refusal, Refusals
from constitution import Verdict

__all__ = ["Declined", "Ending", "Flaw", "not_run", "rejected", "worst_ending"]

SEVERITY: tuple[RunStatus, ...] = ("aborted", "stopped", "failed", "doom_loop", "limit")


@frozen
class Ending:
    """The run should end: with this status, for this reason, with these last words."""

    status: RunStatus
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or self.reason


@frozen
class Flaw:
    """The call itself cannot be run: cut off, unreadable, unknown, or with wrong arguments."""

    text: str

    def __str__(self) -> str:
        return self.text


@frozen
class Declined:
    """A person was asked about the call and did not say yes; `present` is false when nobody was there to ask."""

    verdict: Verdict
    text: str = ""
    present: bool = True

    def __str__(self) -> str:
        said = f"the user said no ({self.text})" if self.text else "the user said no"
        return f"{said if self.present else 'no person present'}: {self.verdict}"


def not_run(call: str, refusals: Refusals) -> CallAnswered:
    """Return the answer to a call that was never put up, or never started: why, in one sentence."""
    outcome: CallOutcome = "invalid" if any(isinstance(refusal.because, Flaw) for refusal in refusals) else "ended"
    reasons = "; ".join(dict.fromkeys(str(refusal.because) for refusal in _sorted(refusals)))
    return CallAnswered(call, f"not executed: {reasons}", is_error=True, outcome=outcome)


def rejected(call: str, refusals: Refusals) -> CallAnswered:
    """Return the answer to a call that the gate rejected: who refused, by which rule, and why."""
    reasons = "; ".join(f"{refusal.bthread}: {refusal.because}" for refusal in _sorted(refusals))
    nobody = any(isinstance(refusal.because, Declined) and not refusal.because.present for refusal in refusals)
    text = f"denied: no person present ({reasons})" if nobody else f"rejected: {reasons}"
    return CallAnswered(call, text, is_error=True, outcome="rejected")


def worst_ending(refusals: Refusals) -> RunEnded | None:
    """Return the end of the run that the refusals ask for: the worst of their endings; None if they ask for none."""
    endings = [refusal.because for refusal in _sorted(refusals) if isinstance(refusal.because, Ending)]
    if not endings:
        return None
    worst = min(endings, key=lambda ending: SEVERITY.index(ending.status))
    return RunEnded(worst.status, worst.reason, worst.text)


def _sorted(refusals: Refusals) -> list[Refusal]:
    """Order refusals by who and why: what is made of them must not depend on the order of b-threads."""
    return sorted(refusals, key=lambda refusal: (refusal.bthread, str(refusal.because)))
