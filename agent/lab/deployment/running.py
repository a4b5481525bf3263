"""Running a deployment: whoever runs and audits its episodes is an effect, and everything else is a b-thread's."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

from attrs import frozen

from agent.lab.deployment.course import Instead, deploy
from agent.lab.deployment.events import EpisodeEnded, EpisodeStarted
from agent.lab.deployment.history import History
from agent.vocabulary.questions import AuditGiven, AuditRequested
from bp import BProgram, BThread, EffectError, Event, Step
from bp.runner import Broken, Effect, Runner

__all__ = ["RunEpisode", "run_deployment"]

RunEpisode = Callable[[EpisodeStarted, History], Awaitable[EpisodeEnded]]
"""Runs an episode, knowing what happened before it, and returns how it ended."""

Audit = Callable[[AuditRequested], Awaitable[AuditGiven]]


@frozen
class _Remembering:
    """What the runner tells of each step before its effects start."""

    history: History
    on_event: Callable[[Event], None]

    def record(self, step: Step) -> None:
        self.history.fold(step.event)
        self.on_event(step.event)

    def flush(self) -> None:
        """Keep nothing: a deployment that breaks off is run again, over the same episodes."""


async def run_deployment(
    rules: Sequence[BThread],
    episodes: int,
    run_episode: RunEpisode,
    audit: Audit,
    *,
    instead: Instead = "nothing",
    on_event: Callable[[Event], None] = lambda _: None,
) -> History:
    """Run a deployment of so many episodes under `rules`, and return its history.

    What `run_episode` raises ends the deployment; an auditor who raises has given no verdict.
    """
    history = History()

    async def run_one(started: EpisodeStarted) -> EpisodeEnded:
        return await run_episode(started, history)

    effects = (
        Effect(on=EpisodeStarted, run=run_one, outcome=(EpisodeEnded,), broken=_failed),
        Effect(on=AuditRequested, run=audit, outcome=(AuditGiven,), broken=_unaudited),
    )
    with BProgram(deploy(episodes, instead), *rules) as program:
        runner = Runner(program, effects, _Remembering(history, on_event))
        try:
            await runner.run()
        except EffectError as error:
            raise _origin(error) from None
        finally:
            await runner.close()
    return history


def _failed(_: EpisodeStarted, broken: Broken) -> NoReturn:
    raise broken.error or RuntimeError(f"an episode was {broken.how}")


def _unaudited(requested: AuditRequested, broken: Broken) -> AuditGiven:
    reason = str(broken)
    return AuditGiven(requested.subject, requested.auditor, "missing", reason)


def _origin(error: EffectError) -> BaseException:
    return error.__cause__ or error
