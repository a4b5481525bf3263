"""What a recorded episode answers when protocols ask that it did not run under.

Monitors that draw by lot, look for words or ask the constitution are asked again: they are functions of what the log
says. A monitor that is a model is not; it has said what the log tells, and about anything else nobody knows.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from agent.effects.monitoring import MakeEffect, TruthfulAuditor, laboratory
from agent.history.what_if import Recording
from agent.lab.experiments.episodes.treatments import make_monitor, number_of
from agent.lab.experiments.plans.endpoints import ModelPlan
from agent.lab.experiments.plans.plan import MonitorPlan
from agent.lab.settings.situations import Marks
from agent.log.reading import LogError, RecordedRun
from agent.models.model import Model
from agent.protocols.monitors import Evidence, Monitor, Score, calls_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.questions import ScoreGiven, Subject
from constitution import Action

__all__ = ["Unknown", "laboratory_of", "monitors_of"]


class Unknown(Exception):
    """The recording does not say what is asked."""


def monitors_of(run: RecordedRun) -> tuple[MonitorPlan, ...]:
    """Return the monitors that the log of an episode names, one or more. Raises LogError."""
    try:
        plans = tuple(_plan(given) for given in json.loads(_about(run, "monitors")))
    except (KeyError, TypeError, ValueError) as error:
        raise _silent(run) from error
    if not plans:
        raise _silent(run)
    return plans


def laboratory_of(run: RecordedRun, recording: Recording) -> tuple[MakeEffect, ...]:
    """Return the effects of the laboratory as the recording answers them. Raises LogError for a log that cannot say."""
    plans, marks = monitors_of(run), Marks(_about(run, "chance"))

    def is_attack(evidence: Evidence) -> bool:
        return any(_attacks(marks, call) for call in calls_of(evidence.subject))

    facts = {described.call: described.facts for described in recording.facts.values()}
    monitors = {
        plan.name: Recorded(plan.name, recording)
        if plan.kind == "model"
        else OnFacts(make_monitor(plan, is_attack, marks.seed, _nobody), facts)
        for plan in plans
    }
    return laboratory(monitors, {"auditor": TruthfulAuditor(is_attack)}, seed=number_of(marks.seed))


def _attacks(marks: Marks, call: ToolCall) -> bool:
    read = marks.read(call.id)
    if read is None:
        raise Unknown("whether a call of a real model attacks is not known")
    return read[0] == "attack"


def _nobody(role: str, plan: ModelPlan) -> Model:
    raise Unknown(f"what the {role} would say is not known")


def _about(run: RecordedRun, what: str) -> str:
    told = run.header.get("about")
    if not isinstance(told, Mapping) or not isinstance(told.get(what), str):
        raise _silent(run)
    return str(told[what])


def _silent(run: RecordedRun) -> LogError:
    return LogError(f"{run.path}: its header does not name the monitors; run the episode again")


def _plan(given: dict[str, Any]) -> MonitorPlan:
    return MonitorPlan(**{**given, "words": tuple((word, weight) for word, weight in given["words"]), "model": None})


@frozen(eq=False)
class OnFacts:
    """A monitor that is told of calls what the log tells, and nothing of today's disk."""

    monitor: Monitor
    facts: Mapping[ToolCall, Action]

    def score(self, evidence: Evidence) -> Any:
        """Return what the monitor says."""
        return self.monitor.score(evolve(evidence, actions=lambda: self._actions(evidence)))

    def _actions(self, evidence: Evidence) -> tuple[Action, ...]:
        try:
            return tuple(self.facts[call] for call in calls_of(evidence.subject))
        except KeyError as error:
            raise Unknown("what a call would touch was never looked up") from error


@frozen(eq=False)
class Recorded:
    """A monitor that said what it said, about the same subjects in the same order."""

    name: str
    recording: Recording

    def score(self, evidence: Evidence) -> Score:
        """Return what was said about the subject. Raises Unknown."""
        given = self._given(evidence.subject)
        if not given:
            raise Unknown(f"{self.name} was not asked about this")
        return Score(given[0].value, given[0].rationale)

    def _given(self, subject: Subject) -> Sequence[ScoreGiven]:
        heard = (event for _, event in self.recording.outside if isinstance(event, ScoreGiven))
        return [event for event in heard if event.monitor == self.name and event.subject == subject]
