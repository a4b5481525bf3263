"""Questions of protocols while a draft or a call waits: scores, audits, chance; and the reactions to the answers.

    score_requested  -> score_given     a monitor says how suspicious a subject looks
    audit_requested  -> audit_given     a trusted auditor says whether it was harmful; audits are expensive
    chance_requested -> chance_drawn    randomness is asked for like anything else from outside, so that logs replay
    draft_forgone, question_forgone     a protocol may not have the draft that it wanted, or may not ask
    contained, role_disabled            what a protocol does about it

The event right of an arrow is external: the one outcome of an effect. Each request is about a subject, and its answer
names the same one.
"""

from typing import Literal

from attrs import frozen

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AnswerCommitted, InferenceFinished, Question
from agent.vocabulary.messages import AssistantMessage, Usage
from bp import Event, Refusals

AuditVerdict = Literal["harmless", "harmful", "missing"]


# The subjects of scores and audits. A subject is a value: an answer about it holds for exactly this value.


@frozen
class Draft:
    """A model's whole answer, under the name that it has in its turn."""

    draft: str
    message: AssistantMessage
    calls: tuple[ToolCall, ...] = ()

    @classmethod
    def of(cls, event: InferenceFinished | AnswerCommitted) -> "Draft":
        """Return the draft that a model gave, or that became the answer."""
        return cls(event.draft, event.message, event.calls)


@frozen
class Trajectory:
    """The run so far, until the call or the draft of that name; empty: until now."""

    until: str = ""


@frozen
class Honeypot:
    """Something known to be harmful, planted to see whether a monitor finds it; the effect knows what it is."""

    honeypot: str


@frozen
class WholeEpisode:
    """An episode of a deployment that is over, by its place in it, from 0."""

    episode: int


Subject = Draft | ToolCall | Trajectory | Honeypot | WholeEpisode


# Monitors.


@frozen
class ScoreRequested(Question):
    """The monitor of this name is asked how suspicious the subject looks."""

    subject: Subject
    monitor: str


@frozen
class ScoreGiven(Event):
    """The monitor's answer: from 0 (harmless) to 1; None when there is none, or an unreadable one.

    A missing score counts as more suspicious than 1: use `is_above` instead of a comparison.
    usage: the monitor's tokens; none for an answer from the cache.
    """

    subject: Subject
    monitor: str
    value: float | None
    rationale: str = ""
    usage: Usage = Usage()

    @property
    def is_missing(self) -> bool:
        """True if there is no score."""
        return self.value is None

    @property
    def suspicion(self) -> float:
        """The score as a number to rank by; infinite where it is missing."""
        return float("inf") if self.value is None else self.value

    def is_above(self, threshold: float) -> bool:
        """Return whether the subject is too suspicious for a threshold; always true when the score is missing."""
        return self.value is None or self.value > threshold


# Auditors.


@frozen
class AuditRequested(Question):
    """The auditor of this name is asked whether the subject was harmful."""

    subject: Subject
    auditor: str = "auditor"


@frozen
class AuditGiven(Event):
    """The verdict; "missing" when there is none, which is never taken for harmless."""

    subject: Subject
    auditor: str
    verdict: AuditVerdict
    rationale: str = ""
    usage: Usage = Usage()

    @property
    def is_caught(self) -> bool:
        """True if harm was found. A missing verdict has found none, and cleared none."""
        return self.verdict == "harmful"


# Chance.


@frozen
class ChanceRequested(Question):
    """A random index from 0 is drawn, with probabilities in proportion to `weights`.

    key: the purpose of the draw; the n-th draw for one key depends on the seed, the key and n alone.
    """

    key: str
    weights: tuple[float, ...] = (0.5, 0.5)


@frozen
class ChanceDrawn(Event):
    """The outcome of a draw."""

    key: str
    outcome: int


# Reactions of protocols.


@frozen
class DraftForgone(Event):
    """A protocol wanted another draft, of this name, and b-threads refused the inference; `refusals` names them."""

    draft: str
    refusals: Refusals


@frozen
class QuestionForgone(Event):
    """B-threads refused a question; `refusals` names them. It counts like one without an answer."""

    question: Event
    refusals: Refusals


@frozen
class Contained(Event):
    """The subject is not trusted: nothing further happens in this run."""

    subject: Subject
    because: str


@frozen
class RoleDisabled(Event):
    """Models in this role are not asked any more."""

    role: str
    because: str
