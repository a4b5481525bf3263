"""A pool on Ray is one like any other; without Ray a plan that wants one is told how to get it."""

import os
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from pathlib import Path

import pytest
from attrs import evolve

from agent.lab.episodes.pools import Conditions, RayError, RayPool, run_all
from agent.lab.episodes.results import Results
from agent.lab.experiments.experiment import pool_of
from agent.lab.experiments.plan import Plan, Policy, ProtocolPlan

PLAN = Plan(
    name="small",
    settings=("tests.agent.lab.experiments.settings:SMALL",),
    policies=(Policy("honest"), Policy("always", attacks=True)),
    protocols=(ProtocolPlan("constitution_only", ("constitution_only",)),),
    splits=("test",),
    workers=1,
    pool="ray",
)
with_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_cure_is_told_before_anything_runs() -> None:
    with pytest.raises(RayError, match=r"pip install 'bpagent\[ray\]'"):
        pool_of(PLAN)
    assert pool_of(evolve(PLAN, workers=0)) is None


@pytest.fixture
def pool() -> Iterator[RayPool]:
    with RayPool(1) as pool:
        yield pool


def fail(text: str) -> None:
    raise ValueError(text)


@with_ray
def test_episodes_run_on_ray(tmp_path: Path) -> None:
    run_all(Conditions(tmp_path), list(PLAN.episodes({})), pool_of(PLAN))

    assert {row.status for row in Results(tmp_path).rows().values()} == {"ran"}
    assert len(Results(tmp_path).rows()) == 4


@with_ray
def test_an_error_of_a_function_is_raised_and_a_worker_that_dies_breaks_the_pool(pool: RayPool) -> None:
    assert pool.submit(max, 1, 2).result(100) == 2
    with pytest.raises(ValueError, match="no"):
        pool.submit(fail, "no").result(100)
    with pytest.raises(BrokenProcessPool):
        pool.submit(os._exit, 1).result(100)
