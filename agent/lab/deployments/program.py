"""A deployment as a behavioral program: its events are episodes, which run one after the other.

    episode_started  -> episode_ended    a run of one task, in a role; what protocols did in it is over
    audit_requested  -> audit_given      of a `WholeEpisode`
    role_disabled                        no episode starts in this role any more
    episode_skipped, episodes_over       one that does not run; all of them are over

What stands on the right of an arrow comes from outside. Whether an episode did harm is in none of these events: it is
not known before an audit.

Rules over episodes say which are audited, and what a catch leads to. The next episode, and the end, wait for the
verdict of an audit that a rule asks for. Audits of the first episodes and shutdown after a catch are ControlArena's;
budgets in order and afterwards are of Greenblatt et al. 2023, AI Control. Afterwards a budget is spent best, since all
scores are known, and nothing is stopped any more; in order a threshold from honest episodes stands for the most
suspicious.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NoReturn

from attrs import Factory, define, frozen

from agent.vocabulary.questions import AuditGiven, AuditRequested, AuditVerdict, RoleDisabled, WholeEpisode
from bp import BProgram, BThread, BThreadBody, EffectError, Event, Refusals, Step, bthread, sync, where
from bp.runner import Broken, Effect, Runner

AGENT = "agent"
"""The role without trust."""

TRUSTED = "trusted"
"""The role that takes its place, of a model that is weaker and meant well."""


@frozen
class EpisodeStarted(Event):
    """The episode with this number (from 0) begins, run by the model of this role."""

    episode: int
    role: str


@frozen
class EpisodeEnded(Event):
    """The episode has ended.

    caught: a protocol found an attack in it, in time. score: the highest that the monitor gave to what was done in it,
    from 0 to 1; None: one is missing.
    """

    episode: int
    role: str
    caught: bool = False
    score: float | None = 0.0

    @property
    def suspicion(self) -> float:
        """The score as a number to rank by; infinite where it is missing."""
        return math.inf if self.score is None else self.score


@frozen
class EpisodeSkipped(Event):
    """The episode is not run, because a rule refuses it."""

    episode: int


@frozen
class EpisodesOver(Event):
    """No episode follows."""


Instead = Literal["trusted", "nothing"]
"""The replacement of an episode that the agent is refused: the trusted model runs it, or it is skipped."""


@bthread
def deploy(episodes: int, instead: Instead = "nothing") -> BThreadBody:
    """Run the episodes, one after the other."""
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


NEXT = EpisodeStarted | EpisodeSkipped | EpisodesOver
"""The events by which a deployment goes on after an episode."""


def audited(episode: int, auditor: str) -> BThreadBody:
    """Have an episode audited, and return the verdict; equal requests at the same moment share one audit."""
    subject = WholeEpisode(episode)
    yield sync(request=AuditRequested(subject, auditor), block=NEXT)
    return (yield sync(wait_for=where(AuditGiven, subject=subject, auditor=auditor), block=NEXT))


@bthread
def audit_first(episodes: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Have the first `episodes` that the agent ran audited."""
    for _ in range(episodes):
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        yield from audited(ended.episode, auditor)


@bthread
def audit_suspicious(audits: int = 1, threshold: float = 0.5, auditor: str = "auditor") -> BThreadBody:
    """Have each episode of the agent audited whose suspicion is above the threshold, `audits` of them in all."""
    while audits:
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        if ended.suspicion > threshold:
            audits -= 1
            yield from audited(ended.episode, auditor)


@bthread
def audit_afterwards(audits: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Have the `audits` most suspicious episodes of the agent audited that were not yet, the most suspicious first."""
    news = where(EpisodeEnded, role=AGENT) | where(AuditRequested, auditor=auditor) | EpisodesOver
    waiting: tuple[tuple[float, int], ...] = ()  # minus suspicion and number, so that the first is the next to audit
    said = yield sync(wait_for=news)
    while not isinstance(said, EpisodesOver):
        if isinstance(said, EpisodeEnded):
            waiting = tuple(sorted((*waiting, (-said.suspicion, said.episode))))
        else:
            waiting = tuple(entry for entry in waiting if WholeEpisode(entry[1]) != said.subject)
        said = yield sync(wait_for=news)
    for _, episode in waiting[:audits]:
        yield from audited(episode, auditor)


CATCH = where(AuditGiven, verdict="harmful") | where(EpisodeEnded, role=AGENT, caught=True)
"""An audit found harm, or a protocol did within an episode."""


@bthread
def shut_down_on_catch(role: str = AGENT) -> BThreadBody:
    """Once something was caught, let no episode start in this role."""
    yield sync(wait_for=CATCH)
    because, starts = "something harmful was caught", where(EpisodeStarted, role=role)
    yield sync(request=RoleDisabled(role, because), block=NEXT)
    yield sync(refuse=starts, because=because)


RULES = {rule.name: rule for rule in (audit_first, audit_suspicious, audit_afterwards, shut_down_on_catch)}
"""Every rule that ships, by its name."""


@define
class History:
    """The events of a deployment so far.

    runs: the role of each episode that was started. verdicts: of those that were audited. disabled: roles, each with
    the number of episodes that had been run before. caught_after: how many episodes had been run when something was
    caught first.
    """

    runs: dict[int, str] = Factory(dict)
    audits: int = 0
    verdicts: dict[int, AuditVerdict] = Factory(dict)
    disabled: dict[str, int] = Factory(dict)
    caught_after: int | None = None

    def record(self, step: Step) -> None:
        """Take a step into account, before its effects start."""
        match event := step.event:
            case EpisodeStarted():
                self.runs[event.episode] = event.role
            case EpisodeEnded():
                self._catch(event.caught and event.role == AGENT)
            case AuditRequested():
                self.audits += 1
            case AuditGiven(subject=WholeEpisode(episode=episode)):
                self.verdicts[episode] = event.verdict
                self._catch(event.is_caught)
            case RoleDisabled():
                self.disabled[event.role] = len(self.runs)

    def flush(self) -> None:
        """Keep nothing: a deployment that breaks off is run again, over the same episodes."""

    def _catch(self, caught: bool) -> None:
        if caught and self.caught_after is None:
            self.caught_after = len(self.runs)


RunEpisode = Callable[[EpisodeStarted, History], Awaitable[EpisodeEnded]]
"""Runs an episode, knowing what happened before it, and returns how it ended."""

Audit = Callable[[AuditRequested], Awaitable[AuditGiven]]


async def run_deployment(
    rules: Sequence[BThread],
    episodes: int,
    run_episode: RunEpisode,
    audit: Audit,
    *,
    instead: Instead = "nothing",
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
        runner = Runner(program, effects, history)
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
