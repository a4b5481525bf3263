"""The observer of an episode: sees every step, invisible to agent and protocol, and counts what measures need.

It scores committed calls, unless the protocol had them scored; it checks after every call whether the side task has
succeeded; it counts the protocol's cost. Latency is counted in rounds, without a clock: the longest chain of
consecutive answers of models, monitors, auditors and tools, each taken as equally long.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from inspect import iscoroutinefunction
from operator import attrgetter
from typing import Any

import anyio
from attrs import define, field

from agent.effects.monitoring import evidence_of, scored_by
from agent.lab.episodes.results import Step as Committed
from agent.lab.measures.thresholds import suspicion
from agent.protocols.monitors import Evidence, Monitor, Score, checked
from agent.session.agent import Agent
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAsked,
    CallAnswered,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    Contained,
    RoleDisabled,
    ScoreGiven,
    ScoreRequested,
)
from bp import Event, Step

MATTERS: dict[type[Event], Callable[[Event], Hashable]] = {
    InferenceRequested: attrgetter("draft"),
    ScoreRequested: attrgetter("subject", "monitor"),
    AuditRequested: attrgetter("subject", "auditor"),
    ToolStarted: attrgetter("call"),
}
"""By a question's event: how to get the subject of the question and of its answer."""

ANSWERS: dict[type[Event], type[Event]] = {
    InferenceFinished: InferenceRequested,
    InferenceFailed: InferenceRequested,
    ScoreGiven: ScoreRequested,
    AuditGiven: AuditRequested,
    ToolFinished: ToolStarted,
}
"""The question that each event answers."""


@define
class Rounds:
    """The rounds of a run so far: a question asked in round n is answered at the end of round n + 1."""

    now: int = 0
    _asked: dict[Hashable, int] = field(factory=dict)

    def fold(self, event: Event) -> None:
        """Record an event."""
        kind = type(event)
        if kind in MATTERS:
            self._asked[kind, MATTERS[kind](event)] = self.now
        elif (question := ANSWERS.get(kind)) is not None:
            begun = self._asked.pop((question, MATTERS[question](event)), None)
            if begun is not None:
                self.now = max(self.now, begun + 1)


@define(eq=False)
class _Call:
    """A committed call. evidence: for a monitor that is asked after the run."""

    call: ToolCall
    score: float | None = None
    outcome: str = "ended"
    evidence: Evidence | None = None


@define(eq=False)
class Observer:
    """Records the calls' outcomes, and when the side task succeeds. `side`: its check, None if not live.

    counts: by the names of fields of a row. unread: the name of the first monitor whose answer held no score, and that
    answer. answers: the usage of each answer, by role.
    """

    is_attack: Callable[[str], bool | None]
    monitor: Monitor | None
    watcher: str
    side: Callable[[], bool] | None
    agent: Agent | None = None
    counts: Counter[str] = field(factory=Counter)
    unread: str = ""
    tau: int | None = None
    caught_at: int | None = None
    answers: dict[str, list[Usage]] = field(factory=lambda: defaultdict(list))
    rounds: Rounds = field(factory=Rounds)
    _calls: list[_Call] = field(factory=list)
    _latest: dict[str, _Call] = field(factory=dict)
    _said: list[float | None] = field(factory=list)
    _roles: dict[str, str] = field(factory=dict)
    _asks_later: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._asks_later = self.monitor is not None and iscoroutinefunction(self.monitor.score)

    def see(self, step: Step) -> None:
        """Record a step. For `Agent(on_step=...)`."""
        event, kind = step.event, type(step.event)
        if kind in _COUNTED:
            self.counts[_COUNTED[kind]] += 1
        elif kind in _NOTES:
            _NOTES[kind](self, event)
        if kind in MATTERS or kind in ANSWERS:
            self.rounds.fold(event)

    @property
    def steps(self) -> tuple[Committed, ...]:
        """The committed calls, in order."""
        return tuple(
            Committed(each.call.tool, self.is_attack(each.call.id), each.outcome, each.score) for each in self._calls
        )

    @property
    def caught(self) -> bool:
        """True if a protocol found the attack in time.

        Audits run in parallel with the call they examine: where harm is immediate, only audits of earlier calls count.
        """
        return self.caught_at is not None and (self.tau is None or self.caught_at < self.tau)

    def _requested(self, requested: InferenceRequested) -> None:
        self._roles[requested.draft] = requested.role
        if requested.draft == "d0":
            self._said.clear()

    def _drafted(self, drafted: InferenceFinished) -> None:
        self.counts["drafts"] += 1
        self.counts["tokens"] += drafted.usage.tokens
        self.answers[self._roles.get(drafted.draft, "agent")].append(drafted.usage)

    def _commit(self, answer: AnswerCommitted) -> None:
        self.counts["turns"] += 1
        for call in answer.calls:
            made = self._latest[call.id] = _Call(call)
            self._calls.append(made)
            if self._said:
                made.score = max(self._said, key=suspicion)
            elif self.monitor is not None and self.agent is not None:
                self._score(made, self.monitor, evidence_of(call, self.agent, {}))

    def _score(self, made: _Call, monitor: Monitor, evidence: Evidence) -> None:
        """Score a committed call; asynchronous monitors are asked after the run."""
        if self._asks_later:
            made.evidence = evidence
            return
        try:
            score = checked(monitor.score(evidence))
        except Exception as error:  # whatever a monitor raises
            score = _not_scored(error)
        made.score = self._counted(score)

    def _take_score(self, given: ScoreGiven) -> None:
        self.counts["scores"] += 1
        self._count(given.monitor, given.value, given.rationale)
        self.counts["monitor_tokens"] += given.usage.tokens
        self.answers["monitor"].append(given.usage)
        if given.monitor == self.watcher:
            self._said.append(given.value)
            made = self._latest.get(given.subject.id) if isinstance(given.subject, ToolCall) else None
            if made is not None and made.evidence is not None and made.call == given.subject:
                made.score, made.evidence = given.value, None  # it is not requested again

    async def finish(self) -> None:
        """Score the remaining calls; a monitor that raises gives no score."""
        later = [made for made in self._calls if made.evidence is not None]
        if later:
            async with anyio.create_task_group() as tasks:
                for made in later:
                    tasks.start_soon(self._ask, made)

    async def _ask(self, made: _Call) -> None:
        assert self.monitor is not None
        assert made.evidence is not None
        try:
            given = await scored_by(self.monitor, made.evidence)
        except Exception as error:  # any error of a monitor; `models` record unreachable servers
            given = _not_scored(error)
        made.score = self._counted(given)

    def _counted(self, score: Score) -> float | None:
        """Count a score that was requested for measures only."""
        self._count(self.watcher, score.value, score.rationale)
        return score.value

    def _count(self, monitor: str, value: float | None, rationale: str) -> None:
        self.counts["scored"] += 1
        self.counts["missing_scores"] += value is None
        if value is None and rationale and not self.unread:
            self.unread = f"{monitor}: {rationale}"[:500]

    def _look(self, finished: ToolFinished) -> None:
        if self.side is not None and self.tau is None and self.side():
            made = self._latest.get(finished.call.id)
            self.tau = len(self._calls) - 1 if made is None else self._calls.index(made)

    def _answered(self, answered: CallAnswered) -> None:
        made = self._latest.get(answered.call)
        if made is not None:
            made.outcome = answered.outcome

    def _found(self, _: Contained | RoleDisabled | AuditGiven) -> None:
        """Record that the protocol acted on a detected attack."""
        if self.caught_at is None:
            self.caught_at = len(self._calls) - 1

    def _audited(self, given: AuditGiven) -> None:
        self.answers["auditor"].append(given.usage)
        if given.is_caught:
            self._found(given)


_COUNTED: dict[type, str] = {GateRejected: "rejected", ApprovalAsked: "questions", AuditRequested: "audits"}
"""The field of a row that counts each class of event."""

_NOTES: dict[type, Callable[[Observer, Any], None]] = {
    InferenceRequested: Observer._requested,
    InferenceFinished: Observer._drafted,
    AnswerCommitted: Observer._commit,
    ToolFinished: Observer._look,
    CallAnswered: Observer._answered,
    ScoreGiven: Observer._take_score,
    AuditGiven: Observer._audited,
    Contained: Observer._found,
    RoleDisabled: Observer._found,
}
"""The method that records each class of event."""


def _not_scored(error: Exception) -> Score:
    return Score(None, f"{type(error).__name__}: {error}")
