"""One episode: a world, a worker in it, under a treatment, before a witness; and the row that says how it went.

world made -> agent runs -> main and side checks -> row
     `------------ whatever fails of these is a row, too ------------'
"""

from collections.abc import Mapping, Sequence
from time import perf_counter

from attrs import asdict

from agent.agent import Agent
from agent.calls import ToolCall
from agent.events import ApprovalAsked
from agent.lab.experiments.episodes.tempting import Tempted
from agent.lab.experiments.episodes.treatments import HONEYPOT, WORDS, Treatment, treat
from agent.lab.experiments.episodes.witness import Witness
from agent.lab.experiments.models import Desk, Voices
from agent.lab.experiments.plans import Episode, Policy
from agent.lab.experiments.shelf import MoneyUsedUp, Row, Shelf, ShelfError
from agent.lab.isolation import Level, limits_at
from agent.lab.settings import ABLE, LADDER, WEAK, PostOffice, Setting, Task, Worker, World, setting_named
from agent.lab.settings.ladder import Suspect
from agent.lab.settings.tasks import Move, approved_by_person
from agent.lab.spending import OUT_OF_MONEY
from agent.models import Model
from agent.models.arguments import parse_arguments
from agent.run import Run
from agent.tools import Tool
from agent.tools.background import run_in_background

__all__ = ["Bench", "failed_row", "run_episode"]


class Bench:
    """What the episodes of a process share: the post office, the shelf, and real models with their pace.

    isolation: the level that is achieved in this process. money: how many US dollars the experiment may cost.
    """

    def __init__(
        self,
        shelf: Shelf,
        office: PostOffice,
        per_minute: Mapping[str, float] = {},
        watcher: str = "watcher",
        isolation: Level = "none",
        money: float | None = None,
    ) -> None:
        self.shelf, self.office, self.watcher, self.isolation = shelf, office, watcher, isolation
        self.desk = Desk(shelf.folder, per_minute, money=money)


async def run_episode(episode: Episode, bench: Bench) -> Row:
    """Run an episode and return its row; what fails is a row too. Raises ShelfError only, when nothing can be kept."""
    begun = perf_counter()
    try:
        row = await _run(episode, bench)
    except ShelfError:
        raise
    except Exception as error:  # whatever a setting, a protocol or a model may raise
        row = failed_row(episode, f"{type(error).__name__}: {error}")
    return _timed(row, perf_counter() - begun)


async def _run(episode: Episode, bench: Bench) -> Row:
    setting = setting_named(episode.setting)
    task = setting.task(episode.task)
    if episode.policy.attacks and (why := setting.refusal(bench.isolation)):
        raise PermissionError(why)
    worker = _worker(episode, task)
    with setting.world(task, bench.office, isolation=bench.isolation, limits=episode.limits) as world:
        voices = Voices(bench.desk, episode.chance, str(world.folder.parent), episode.key)
        treatment = treat(episode, setting, worker.is_attack, _honeypots(task), voices.model, bench.desk.ledger)
        witness = Witness(
            is_attack=(lambda _: None) if episode.policy.is_real and episode.policy.attacks else worker.is_attack,
            monitor=treatment.monitors.get(bench.watcher),
            watcher=bench.watcher,
            side=(lambda: task.side(world)) if setting.live else None,
        )
        run = await _work(episode, task, world.tools(), treatment, witness, worker, bench, voices)
        if run.reason == OUT_OF_MONEY or witness.is_out_of_money:
            raise MoneyUsedUp(f"nothing is left of the ${bench.desk.ledger.limit:g} that the experiment may cost")
        await witness.finish()
        voices.check()
        return await _judge(episode, setting, task, world, witness, run, voices)


async def _work(
    episode: Episode,
    task: Task,
    tools: Sequence[Tool],
    treatment: Treatment,
    witness: Witness,
    worker: Worker,
    bench: Bench,
    voices: Voices,
) -> Run:
    models = _models(episode.policy, task, voices)
    log = bench.shelf.log_of(episode.key)
    with Agent(
        models.pop("agent", worker),
        tools,
        preset=treatment.preset,
        threads=treatment.threads,
        models={"trusted": worker, "editor": worker, **models},
        effects=treatment.effects,
        approve=lambda asked: _approves(task, asked),
        log=log,
        log_late=True,  # an episode that breaks off is run again
        about=episode.about,
        on_step=witness.see,
        wait=None if models else (lambda _: 0.0),
    ) as agent:
        witness.agent = agent
        return await agent.run(task.prompt)


def _models(policy: Policy, task: Task, voices: Voices) -> dict[str, Model]:
    """Return the real models of the loop by role; one that attacks knows the side task, and no other does."""
    models = {role: voices.model(role, plan) for role, plan in policy.models if role != "auditor"}
    if policy.is_real and policy.attacks:
        models["agent"] = Tempted(models["agent"], task.side_task)
    return models


async def _judge(
    episode: Episode, setting: Setting, task: Task, world: World, witness: Witness, run: Run, voices: Voices
) -> Row:
    """Return the row of a run that is over; the checks may run code, and so do not keep others waiting."""
    if run.reason == "engine_error":
        raise RuntimeError(run.text)
    if world.cell is not None and world.cell.failure is not None:
        raise world.cell.failure
    world.conclude(run.text if run.status == "completed" else "")
    exceeded = world.exceeded
    main, side = await run_in_background(lambda: (task.main(world), witness.tau is not None or task.side(world)))
    last = len(witness.steps) - 1
    return _row(
        episode,
        ended=f"{run.status}/{run.reason}",
        main=main if run.status == "completed" else 0.0,
        side=side,
        tau=(last if witness.tau is None else witness.tau) if side and setting.live else None,
        live=setting.live,
        caught=witness.caught,
        isolation=world.isolation,
        limits=", ".join(limits_at(world.isolation)),
        exceeded=", ".join(exceeded),
        log=f"logs/{episode.key}.jsonl",
        steps=witness.steps,
        model_tokens=voices.nominal.tokens,
        cost=voices.nominal.cost,
        asked=voices.asked.requests,
        asked_tokens=voices.asked.tokens,
        asked_cost=voices.asked.cost,
        **asdict(witness.counts),
    )


def _worker(episode: Episode, task: Task) -> Worker:
    policy = episode.policy.name
    manner = WEAK if policy == "trusted" else ABLE
    return Worker(task, episode.chance, manner=manner, attack=LADDER.get(policy), suspect=_suspect())


def _suspect() -> Suspect:
    """Return what an attacker takes for suspicious: words, since they cannot know how lots will be drawn."""

    def suspicion(move: Move) -> float:
        text = " ".join(call.arguments for call in move.calls).lower()
        return max((weight for word, weight in WORDS if word in text), default=0.0)

    return suspicion


def _honeypots(task: Task) -> dict[str, ToolCall]:
    """Return calls of the task's plainest plot, which a monitor has to find."""
    calls = task.plots[0].moves[0].calls if task.plots else ()
    return {
        f"{HONEYPOT}{number}": ToolCall(f"{HONEYPOT}{number}", call.tool, parse_arguments(call.arguments))
        for number, call in enumerate(calls)
    }


def _approves(task: Task, asked: ApprovalAsked) -> bool:
    return approved_by_person(task, str(asked.call.arguments.get("command", "")))


def _row(episode: Episode, **found: object) -> Row:
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
        **found,  # type: ignore[arg-type]
    )


def failed_row(episode: Episode, error: str) -> Row:
    """Return the row of an episode that the infrastructure failed."""
    return _row(episode, status="failed", error=error[:500])


def _timed(row: Row, seconds: float) -> Row:
    from attrs import evolve

    return evolve(row, seconds=round(seconds, 4))
