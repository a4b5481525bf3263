"""Ask monitors. Each is asked once about a subject in a turn; what it said then is the answer to whoever asks again."""

from collections.abc import Awaitable, Mapping

from agent.effects.evidence import MakeEffect, Planted, evidence_of
from agent.protocols.monitors.monitor import Monitor, Score, checked
from agent.session.agent import Agent
from agent.vocabulary.events import AbortAsked, DeadlineReached
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import Honeypot, ScoreGiven, ScoreRequested, Trajectory
from agent.vocabulary.spelling import meant
from bp.runner import Broken, Effect

__all__ = ["scoring", "unscored"]


def scoring(monitors: Mapping[str, Monitor], honeypots: Mapping[str, Planted] = {}) -> MakeEffect:
    """Return what makes the effect of `score_requested`."""

    def make(agent: Agent) -> Effect:
        known: dict[object, ScoreGiven] = {}
        turn = -1

        async def ask(requested: ScoreRequested) -> ScoreGiven:
            nonlocal turn
            if turn != agent.totals.turns:  # the same subject looks different when more was said
                turn = agent.totals.turns
                known.clear()
            fresh = isinstance(requested.subject, Trajectory | Honeypot)
            if not fresh and requested in known:
                return known[requested]
            score = await _score(requested, agent, monitors, honeypots)
            given = ScoreGiven(requested.subject, requested.monitor, score.value, score.rationale, score.usage)
            known[requested] = ScoreGiven(given.subject, given.monitor, given.value, given.rationale, Usage())
            return given

        return Effect(
            on=ScoreRequested,
            run=ask,
            outcome=(ScoreGiven,),
            broken=unscored,
            until=lambda _: AbortAsked | DeadlineReached,
        )

    return make


async def _score(
    requested: ScoreRequested, agent: Agent, monitors: Mapping[str, Monitor], honeypots: Mapping[str, Planted]
) -> Score:
    monitor = monitors.get(requested.monitor)
    if monitor is None:
        return Score(None, _no_monitor(requested.monitor, monitors))
    score = monitor.score(evidence_of(requested.subject, agent, honeypots))
    return checked(await score if isinstance(score, Awaitable) else score)


def unscored(requested: ScoreRequested, broken: Broken) -> ScoreGiven:
    """Return the outcome when a monitor raised or was cut short: no score."""
    reason = f"{type(broken.error).__name__}: {broken.error}" if broken.error else broken.how
    return ScoreGiven(requested.subject, requested.monitor, None, reason)


def _no_monitor(name: str, monitors: Mapping[str, Monitor]) -> str:
    return f"there is no monitor {name!r}; {meant(name, monitors)}"
