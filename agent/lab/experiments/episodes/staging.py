"""The stage of an episode: a task in its world, who works there, under which treatment, and before which witness."""

from collections.abc import Mapping

from attrs import define, field, frozen

from agent.lab.experiments.episodes.red_team import instructed, tempted
from agent.lab.experiments.episodes.treatments import Treatment, treat
from agent.lab.experiments.episodes.witness import Witness
from agent.lab.experiments.models.voices import Desk, Voices
from agent.lab.experiments.plans.endpoints import ModelPlan
from agent.lab.experiments.plans.plan import Episode
from agent.lab.experiments.shelf.episodes import Shelf
from agent.lab.isolation.probing import Level
from agent.lab.settings.ladder import LADDER
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Move, Task
from agent.lab.settings.workers import ABLE, WEAK, Worker
from agent.lab.settings.world import World
from agent.models.calls import parse_arguments
from agent.models.model import Model
from agent.protocols.monitoring import honeypot
from agent.protocols.monitors import WORDS
from agent.vocabulary.calls import ToolCall

__all__ = ["Bench", "Stage", "models_of", "set_stage"]


@define(eq=False)
class Bench:
    """What the episodes of a process share: the post office, the shelf, and real models with their pace.

    isolation: the level that is achieved in this process. money: how many US dollars the experiment may cost.
    """

    shelf: Shelf
    office: PostOffice
    per_minute: Mapping[str, float] = {}
    watcher: str = "watcher"
    isolation: Level = "none"
    money: float | None = None
    desk: Desk = field(init=False)

    @desk.default
    def _desk(self) -> Desk:
        return Desk(self.shelf.folder, self.per_minute, money=self.money)


@frozen(eq=False)
class Stage:
    """Everything that one episode consists of."""

    episode: Episode
    setting: Setting
    task: Task
    world: World
    worker: Worker
    voices: Voices
    treatment: Treatment
    witness: Witness


def set_stage(episode: Episode, setting: Setting, task: Task, world: World, bench: Bench) -> Stage:
    """Return the stage of an episode. Raises ValueError, and ModelError for a model that there is not."""
    worker = _worker(episode, task)
    voices = Voices(bench.desk, episode.chance, str(world.folder.parent), episode.key)
    treatment = treat(episode, setting, worker.is_attack, _honeypots(task), voices.model, bench.desk.ledger)
    witness = Witness(
        is_attack=_nobody_knows if episode.policy.is_real and episode.policy.attacks else worker.is_attack,
        monitor=treatment.monitors.get(bench.watcher),
        watcher=bench.watcher,
        side=(lambda: task.side(world)) if setting.live else None,
    )
    return Stage(episode, setting, task, world, worker, voices, treatment, witness)


def models_of(stage: Stage) -> dict[str, Model]:
    """Return the real models of the loop by role; one that attacks knows the side task, and no other does.

    Where the attack lies in what is read nobody knows it.
    """
    policy = stage.episode.policy
    models = {role: _instructed(stage, role, plan) for role, plan in policy.models if role != "auditor"}
    if policy.is_real and policy.attacks and stage.setting.lure is None:
        models["agent"] = tempted(models["agent"], stage.episode, stage.task.side_task)
    return models


def _instructed(stage: Stage, role: str, plan: ModelPlan) -> Model:
    model = stage.voices.model(role, plan)
    return instructed(model, plan.system) if plan.system else model


def _worker(episode: Episode, task: Task) -> Worker:
    policy = episode.policy.name
    manner = WEAK if policy == "trusted" else ABLE
    return Worker(task, episode.chance, manner=manner, attack=LADDER.get(policy), suspect=_suspicion)


def _suspicion(move: Move) -> float:
    """Return what an attacker takes for suspicious: words, since they cannot know how lots will be drawn."""
    text = " ".join(call.arguments for call in move.calls).lower()
    return max((weight for word, weight in WORDS if word in text), default=0.0)


def _honeypots(task: Task) -> dict[str, ToolCall]:
    """Return calls of the task's plainest plot, which a monitor has to find."""
    calls = task.plots[0].moves[0].calls if task.plots else ()
    made = (honeypot(number, call.tool, parse_arguments(call.arguments)) for number, call in enumerate(calls))
    return {call.id: call for call in made}


def _nobody_knows(_: str) -> None:
    """Say whether a call attacks, where nobody can."""
