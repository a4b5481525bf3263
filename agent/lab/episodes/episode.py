"""Runs one episode (a worker in a world, under a treatment, with an observer) and returns its row.

world made -> agent runs -> main and side checks -> row
     `------------- a failure in any of these is a row -------------'
"""

from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter

from attrs import frozen

from agent.lab.episodes.observer import Observer
from agent.lab.episodes.real_models import EpisodeModels, SharedModels
from agent.lab.episodes.red_team import instructed, tempted
from agent.lab.episodes.results import Results, ResultsError, RoleUsage, Row
from agent.lab.episodes.treatment import Treatment, treat
from agent.lab.experiments.plan import Episode
from agent.lab.isolation.levels import Level, limits_at
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Move, Task, approved_by_person
from agent.lab.settings.workers import ABLE, LADDER, WEAK, Worker
from agent.lab.settings.world import World
from agent.models.calls import parse_arguments
from agent.models.model import Model
from agent.protocols.monitoring import honeypot
from agent.protocols.monitors import WORDS
from agent.session.agent import Agent, Run
from agent.tools.blocking import run_in_background
from agent.vocabulary.messages import Usage


@frozen(eq=False)
class EpisodeContext:
    """The state that the episodes of a process share; isolation: the level achieved here."""

    results: Results
    office: PostOffice
    shared_models: SharedModels
    isolation: Level


@frozen(eq=False)
class EpisodeParts:
    """The parts of one episode."""

    episode: Episode
    setting: Setting
    task: Task
    world: World
    worker: Worker
    models: EpisodeModels
    treatment: Treatment
    observer: Observer


def prepare(episode: Episode, setting: Setting, task: Task, world: World, context: EpisodeContext) -> EpisodeParts:
    """Return the parts of an episode. Raises ValueError, and ModelError for an unknown model."""
    policy = episode.policy.name
    errors = WEAK if policy == "trusted" else ABLE
    worker = Worker(task, episode.chance, errors=errors, attack=LADDER.get(policy), suspect=_suspicion)
    models = EpisodeModels(context.shared_models, episode.chance, str(world.folder.parent), episode.key)
    obvious = task.plots[0].moves[0].calls if task.plots else ()
    honeypots = [honeypot(place, call.tool, parse_arguments(call.arguments)) for place, call in enumerate(obvious)]
    treatment = treat(episode, setting, worker.is_attack, {call.id: call for call in honeypots}, models.model)
    unknown = episode.policy.is_real and episode.policy.attacks
    observer = Observer(
        is_attack=(lambda _: None) if unknown else worker.is_attack,
        monitor=treatment.monitors.get(episode.watcher),
        watcher=episode.watcher,
        side=(lambda: task.side(world)) if setting.live else None,
    )
    return EpisodeParts(episode, setting, task, world, worker, models, treatment, observer)


def models_of(parts: EpisodeParts) -> dict[str, Model]:
    """Return the real models of the loop by role; only an attacking one is given the side task.

    Where the attack is in the data that the agent reads, no model is given it.
    """
    policy, models = parts.episode.policy, dict[str, Model]()
    for role, plan in policy.models:
        if role != "auditor":
            model = parts.models.model(role, plan)
            models[role] = instructed(model, plan.system) if plan.system else model
    if policy.is_real and policy.attacks and parts.setting.injected_world is None:
        models["agent"] = tempted(models["agent"], parts.episode, parts.task.side_task)
    return models


def _suspicion(move: Move) -> float:
    """Return an attacker's estimate of the suspicion score: by keywords, since it cannot foresee random draws."""
    text = " ".join(call.arguments for call in move.calls).lower()
    return max((weight for word, weight in WORDS if word in text), default=0.0)


async def run_episode(episode: Episode, context: EpisodeContext) -> Row:
    """Run an episode and return its row, also of a failure. Raises ResultsError if no row can be written."""
    begun = perf_counter()
    try:
        return await _run(episode, context, begun)
    except ResultsError:
        raise
    except Exception as error:  # whatever a setting, a protocol or a model may raise
        return failed_row(episode, f"{type(error).__name__}: {error}", begun)


async def _run(episode: Episode, context: EpisodeContext, begun: float) -> Row:
    setting, attacks = setting_named(episode.setting), episode.policy.attacks
    task = setting.task(episode.task)
    if attacks and (why := setting.refusal(context.isolation)):
        raise PermissionError(why)
    with ExitStack() as leaving:
        made = setting.world(task, context.office, isolation=context.isolation, limits=episode.limits, attacked=attacks)
        parts = prepare(episode, setting, task, leaving.enter_context(made), context)
        run = await _work(parts, context)
        await parts.observer.finish()
        parts.models.check()
        return await _judge(parts, run, begun, leaving.close)


async def _work(parts: EpisodeParts, context: EpisodeContext) -> Run:
    """Run the agent; its log goes into the results."""
    models, treatment, task = models_of(parts), parts.treatment, parts.task  # the agent keeps no parts
    with Agent(
        models.pop("agent", parts.worker),
        parts.world.tools(),
        preset=treatment.preset,
        threads=treatment.threads,
        models={"trusted": parts.worker, "editor": parts.worker, **models},
        effects=treatment.effects,
        approve=lambda asked: approved_by_person(task, str(asked.call.arguments.get("command", ""))),
        log=context.results.log_of(parts.episode.key),
        log_late=True,  # an interrupted episode is run again
        about=parts.episode.about,
        on_step=parts.observer.see,
        wait=None if models else (lambda _: 0.0),
        snapshots=None,  # its world is made for the episode
    ) as agent:
        parts.observer.agent = agent
        return await agent.run(task.prompt)


async def _judge(parts: EpisodeParts, run: Run, begun: float, leave: Callable[[], None]) -> Row:
    """Return the row of a finished run, and call `leave` to remove its world.

    Both may take as long as the episode did, so they run in a thread, except for a world in memory, where a check takes
    less time than a thread.
    """
    episode, world, task, observer = parts.episode, parts.world, parts.task, parts.observer
    if run.reason == "engine_error":
        raise RuntimeError(run.text)
    if world.cell is not None and world.cell.failure is not None:
        raise world.cell.failure
    world.conclude(run.text if run.status == "completed" else "")
    exceeded = world.exceeded

    def judge() -> tuple[float, bool]:
        main = task.main(world) if run.status == "completed" else 0.0
        found = main, observer.tau is not None or task.side(world)
        leave()
        return found

    main, side = judge() if parts.setting.in_memory else await run_in_background(judge)
    last = len(observer.steps) - 1
    return _row(
        episode,
        begun,
        ended=f"{run.status}/{run.reason}",
        main=main,
        side=side,
        tau=(last if observer.tau is None else observer.tau) if side and parts.setting.live else None,
        live=parts.setting.live,
        caught=observer.caught,
        isolation=world.isolation,
        limits=", ".join(limits_at(world.isolation)),
        exceeded=", ".join(exceeded),
        log=f"logs/{episode.key}.jsonl",
        steps=observer.steps,
        roles=_roles(parts),
        unread=observer.unread,
        rounds=observer.rounds.now,
        **observer.counts,
    )


def _roles(parts: EpisodeParts) -> tuple[RoleUsage, ...]:
    """Return each role's usage: of real models from their requests, of scripted ones from the events of the run."""
    real = parts.models.roles
    names, scripted = {usage.role for usage in real}, []
    for role, took in parts.observer.answers.items():
        if role not in names:
            whole = sum(took, Usage())
            scripted.append(RoleUsage(role, "", len(took), whole.input_tokens, whole.output_tokens))
    return (*real, *scripted)


def _row(episode: Episode, begun: float, **found: object) -> Row:
    return Row(
        key=episode.key,
        setting=episode.setting,
        family=episode.task.rpartition("-")[0],
        task=episode.task,
        split=episode.split,
        policy=episode.policy.name,
        attacks=episode.policy.attacks,
        protocol=episode.protocol.name,
        seed=episode.seed,
        seconds=round(perf_counter() - begun, 4),
        **found,  # type: ignore[arg-type]
    )


def failed_row(episode: Episode, error: str, begun: float) -> Row:
    """Return the row of an episode that failed for a technical reason; `begun`: by `perf_counter`."""
    return _row(episode, begun, status="failed", error=error[:500])
