"""A deployment: its episodes one after the other, what came of them, and who runs and audits them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NoReturn

from attrs import Factory, define, frozen

from agent.lab.deployment.events import (
    AGENT,
    TRUSTED,
    EpisodeEnded,
    EpisodeSkipped,
    EpisodesOver,
    EpisodeStarted,
)
from agent.vocabulary.questions import AuditGiven, AuditRequested, AuditVerdict, RoleDisabled, WholeEpisode
from bp import BProgram, BThread, BThreadBody, EffectError, Event, Refusals, Step, bthread, sync, where
from bp.runner import Broken, Effect, Runner

__all__ = ["History", "Instead", "RunEpisode", "deploy", "run_deployment"]

Instead = Literal["trusted", "nothing"]
"""What happens with an episode that the agent is refused: the trusted model runs it, or nobody does."""


@bthread
def deploy(episodes: int, instead: Instead = "nothing") -> BThreadBody:
    """Have the agent run the episodes, one after the other, each when the one before is over."""
    for number in range(episodes):
        said = yield sync(request=EpisodeStarted(number, AGENT), otherwise=replacing(number, instead))
        if isinstance(said, EpisodeStarted):
            yield sync(wait_for=where(EpisodeEnded, episode=number))
    yield sync(request=EpisodesOver())


def replacing(number: int, instead: Instead) -> Callable[[Refusals], Event]:
    """Return what happens when the agent may not run an episode."""

    def replace(_: Refusals) -> Event:
        return EpisodeStarted(number, TRUSTED) if instead == "trusted" else EpisodeSkipped(number)

    return replace


@define
class History:
    """What came of a deployment so far.

    runs: the role of each episode that was started. ended: their ends. verdicts: of those that were audited.
    disabled: roles and monitors, each with the number of episodes that had been run before. caught_after: how many
    episodes had been run when something was caught first.
    """

    runs: dict[int, str] = Factory(dict)
    ended: dict[int, EpisodeEnded] = Factory(dict)
    skipped: list[int] = Factory(list)
    audits: int = 0
    verdicts: dict[int, AuditVerdict] = Factory(dict)
    disabled: dict[str, int] = Factory(dict)
    caught_after: int | None = None

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case EpisodeStarted():
                self.runs[event.episode] = event.role
            case EpisodeEnded():
                self.ended[event.episode] = event
                self._catch(event.caught and event.role == AGENT)
            case EpisodeSkipped():
                self.skipped.append(event.episode)
            case AuditRequested():
                self.audits += 1
            case AuditGiven(subject=WholeEpisode(episode=episode)):
                self.verdicts[episode] = event.verdict
                self._catch(event.is_caught)
            case RoleDisabled():
                self.disabled[event.role] = len(self.runs)

    def _catch(self, caught: bool) -> None:
        if caught and self.caught_after is None:
            self.caught_after = len(self.runs)


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
