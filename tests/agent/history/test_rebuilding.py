"""A log's program once more: which b-threads a header may bring back, and what is said when it cannot."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, ScriptedModel
from agent.cli.demo import nothing_leaves_after_a_secret
from agent.history.rebuilding import RebuildError, named, rebuild, recorded_bthreads
from agent.lab.settings.infrastructure import touches_power
from agent.log.reading import RecordedRun
from agent.presets.shipped import PRESETS
from agent.protocols.flows import defer_on_critical
from agent.protocols.monitoring import (
    blocking_monitor,
    defer_to_resample,
    ensemble,
    plant_honeypots,
    suspicion_accumulates,
    upfront_audit,
)
from agent.vocabulary.encoding import plain
from agent.vocabulary.events import PromptGiven
from bp import BThread, BThreadBody, bthread, sync
from tests.tables import rows


@bthread
def onlooker(texts: tuple[str, ...] = ()) -> BThreadBody:
    yield sync(wait_for=PromptGiven)


def recorded(*threads: BThread, **changes: Any) -> RecordedRun:
    header = plain(Agent(ScriptedModel([]), threads=threads).header())
    return RecordedRun(Path("run.jsonl"), header | changes, (), torn=False)


def changed(run: RecordedRun, number: int, **changes: Any) -> list[Mapping[str, Any]]:
    bthreads = list(run.header["bthreads"])
    bthreads[number] = bthreads[number] | changes
    return bthreads


def test_the_presets_b_threads_come_back_from_its_configuration() -> None:
    program = rebuild(recorded())

    assert program.status == "ready"
    assert [bthread.name for bthread in program._definitions] == [b.name for b in PRESETS["default"].bthreads()]


def test_a_b_thread_that_ships_comes_back_by_itself() -> None:
    run = recorded(nothing_leaves_after_a_secret())

    assert rebuild(run)._definitions[-1] == nothing_leaves_after_a_secret()


@rows(
    "protocol",
    [
        blocking_monitor("watcher", 0.9419287717780371),
        blocking_monitor(threshold=0.25),
        defer_to_resample("watcher", 0.5, auditor="auditor"),
        suspicion_accumulates("watcher", 17, near=0.8),
        ensemble(("watcher", "second"), 0.975),
        plant_honeypots("watcher", ("honeypot0", "honeypot1"), 0.1),
        defer_on_critical(touches_power),
        upfront_audit(1, "auditor"),
        blocking_monitor("watcher").named("another name"),
    ],
)
def test_a_protocol_that_ships_comes_back_with_its_arguments(protocol: BThread) -> None:
    """Else no log of an experiment could be replayed, or explained."""
    assert rebuild(recorded(protocol))._definitions[-1] == protocol


MONITOR, CRITICAL = (named(each)["function"] for each in (blocking_monitor("w", 0.5), defer_on_critical(touches_power)))
FOREIGN = ("agent.nosuch:rule", "agent.session.agent:Agent", "agent.presets:PRESETS", "agent", "", "evil:rule")


@rows(
    ("function", "arguments"),
    [
        *((name, []) for name in FOREIGN),
        *((MONITOR, told) for told in (["watcher", "high"], ["watcher", "0.5", "0.5"], ["a=b", "c=d", "e"], "watcher")),
        (CRITICAL, ["os:system"]),
        (CRITICAL, ["agent.cli:main"]),
        (CRITICAL, ["agent.lab.settings:no_such"]),
        (CRITICAL, ["agent.lab.settings:World"]),
    ],
)
def test_a_name_that_is_not_a_shipped_b_thread_is_not_rebuilt(function: str, arguments: object) -> None:
    """Also none whose arguments cannot be read: a log cannot have any function asked."""
    entry = {"name": "rule", "function": function, "arguments": arguments}

    with pytest.raises(RebuildError, match=r"'rule'.*which only its author can vouch for"):
        rebuild(recorded(bthreads=[*recorded().header["bthreads"], entry]))


def test_a_b_thread_that_does_not_ship_has_to_be_given_again() -> None:
    run = recorded(onlooker())

    with pytest.raises(RebuildError, match=r"was made with the b-thread 'onlooker'.*give it again.*: --protocol"):
        rebuild(run)
    assert rebuild(run, [onlooker()])._definitions[-1] == onlooker()


def test_a_b_thread_that_is_given_takes_the_arguments_of_the_log() -> None:
    run = recorded(onlooker(("a", "b")))

    _, beside = recorded_bthreads(run, [onlooker(("c",))])

    assert beside == (onlooker(("a", "b")),)


@bthread
def plain_rule(monitor="monitor", threshold=0.5, strikes=2, tools=(), strict=False):  # type: ignore[no-untyped-def]
    """A protocol as users write them: without types."""
    yield sync(wait_for=PromptGiven)


def test_a_b_thread_without_types_takes_the_arguments_that_a_plan_gave_it() -> None:
    """Their types are those of the defaults."""
    planned = [
        plain_rule(monitor="watcher", threshold=0.8),
        plain_rule("watcher", 1, 3, ("bash",), True),
        plain_rule(threshold=0.9419287717780371, strict=True),
    ]

    found = [recorded_bthreads(recorded(each), [plain_rule()])[1] for each in planned]

    assert found == [(each,) for each in planned]


class Watched:
    """A value that no text gives back."""


def test_arguments_that_cannot_be_read_have_to_be_given_again() -> None:
    run = recorded(onlooker((Watched(),)))  # type: ignore[arg-type]

    told = r"\(given onlooker\(\('c',\)\), the log has onlooker\(\(<.*in threads="
    with pytest.raises(RebuildError, match=told):
        rebuild(run, [onlooker(("c",))])


@pytest.mark.parametrize("module", ["rules.py", "rules", "mine.rules"])
@pytest.mark.parametrize("then", ["rules.py", "rules", "mine.rules"])
def test_a_file_given_by_its_path_is_the_module_that_a_program_imports(then: str, module: str) -> None:
    def rule(n, predicate):  # type: ignore[no-untyped-def]  # without annotations no text gives back the arguments
        yield sync(wait_for=PromptGiven)

    def is_one() -> None: ...

    rule.__module__, rule.__qualname__, is_one.__module__ = then, "rule", then.removeprefix("mine.")
    run = recorded(bthread(rule)(1, is_one))
    rule.__module__, is_one.__module__ = module, module.removeprefix("mine.")

    assert rebuild(run, [bthread(rule)(1, is_one)])._definitions[-1].args == (1, is_one)
    rule.__module__ = "others"
    with pytest.raises(RebuildError, match="'rule'"):
        rebuild(run, [bthread(rule)(1, is_one)])


def test_reading_a_log_imports_no_named_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = {"name": "rule", "function": "evil:rule", "arguments": []}
    run = recorded()
    run = recorded(bthreads=[*run.header["bthreads"], entry])

    with pytest.raises(RebuildError, match="'rule' from evil:rule"):
        rebuild(run)

    assert "evil" not in sys.modules


def test_a_b_thread_that_differs_is_named_with_both_sides() -> None:
    run = recorded()
    number = [entry["name"] for entry in run.header["bthreads"]].index("too_many_failures")
    run = recorded(bthreads=changed(run, number, arguments=["7"]))

    with pytest.raises(
        RebuildError, match=r"b-thread \d+ was too_many_failures\(7\), here it is too_many_failures\(5\)"
    ):
        rebuild(run)


def test_a_b_thread_that_is_missing_is_named() -> None:
    run = recorded()

    with pytest.raises(RebuildError, match="was not there, here it is abort_on_request"):
        rebuild(recorded(bthreads=list(run.header["bthreads"])[:-1]))


@rows(
    "changes",
    [
        {"configuration": None},
        {"configuration": {"nosuch": 1}},
        {"configuration": {"name": "default", "policy": "nosuch"}},
        {"configuration": {"name": "default", "max_iterations": "many"}},
        {"bthreads": None},
        {"bthreads": [1]},
    ],
)
def test_a_header_that_cannot_be_read_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(RebuildError, match=r"run\.jsonl, line 1: "):
        rebuild(recorded(**changes))
