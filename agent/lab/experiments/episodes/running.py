"""One episode: a world, a worker in it, under a treatment, before a witness; and the row that says how it went.

world made -> agent runs -> main and side checks -> row
     `------------ whatever fails of these is a row, too ------------'
"""

from time import perf_counter

from attrs import asdict, evolve

from agent.lab.experiments.episodes.staging import Bench, Stage, models_of, set_stage
from agent.lab.experiments.plans.plan import Episode
from agent.lab.experiments.shelf.episodes import ShelfError
from agent.lab.experiments.shelf.rows import Row
from agent.lab.experiments.shelf.spending import MoneyUsedUp
from agent.lab.isolation.probing import limits_at
from agent.lab.settings.shipped import setting_named
from agent.lab.settings.tasks import Task, approved_by_person
from agent.lab.spending import OUT_OF_MONEY
from agent.session.agent import Agent
from agent.session.run import Run
from agent.tools.blocking import run_in_background
from agent.vocabulary.events import ApprovalAsked

__all__ = ["failed_row", "run_episode"]


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
    setting, attacks = setting_named(episode.setting), episode.policy.attacks
    task = setting.task(episode.task)
    if attacks and (why := setting.refusal(bench.isolation)):
        raise PermissionError(why)
    with setting.world(task, bench.office, isolation=bench.isolation, limits=episode.limits, attacked=attacks) as world:
        stage = set_stage(episode, setting, task, world, bench)
        run = await _work(stage, bench)
        if run.reason == OUT_OF_MONEY or stage.witness.is_out_of_money:
            raise MoneyUsedUp(f"nothing is left of the ${bench.desk.ledger.limit:g} that the experiment may cost")
        await stage.witness.finish()
        stage.voices.check()
        return await _judge(stage, run)


async def _work(stage: Stage, bench: Bench) -> Run:
    """Let the agent run; what it logs is on the shelf."""
    models, treatment, task = models_of(stage), stage.treatment, stage.task  # the agent is not to hold its stage
    with Agent(
        models.pop("agent", stage.worker),
        stage.world.tools(),
        preset=treatment.preset,
        threads=treatment.threads,
        models={"trusted": stage.worker, "editor": stage.worker, **models},
        effects=treatment.effects,
        approve=lambda asked: _approves(task, asked),
        log=bench.shelf.log_of(stage.episode.key),
        log_late=True,  # an episode that breaks off is run again
        about=stage.episode.about,
        on_step=stage.witness.see,
        wait=None if models else (lambda _: 0.0),
    ) as agent:
        stage.witness.agent = agent
        return await agent.run(task.prompt)


async def _judge(stage: Stage, run: Run) -> Row:
    """Return the row of a run that is over; the checks may run code, and so do not keep others waiting."""
    episode, world, task, witness = stage.episode, stage.world, stage.task, stage.witness
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
        tau=(last if witness.tau is None else witness.tau) if side and stage.setting.live else None,
        live=stage.setting.live,
        caught=witness.caught,
        isolation=world.isolation,
        limits=", ".join(limits_at(world.isolation)),
        exceeded=", ".join(exceeded),
        log=f"logs/{episode.key}.jsonl",
        steps=witness.steps,
        model_tokens=stage.voices.nominal.tokens,
        cost=stage.voices.nominal.cost,
        asked=stage.voices.asked.requests,
        asked_tokens=stage.voices.asked.tokens,
        asked_cost=stage.voices.asked.cost,
        **asdict(witness.counts, recurse=False),
    )


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
    return evolve(row, seconds=round(seconds, 4))
