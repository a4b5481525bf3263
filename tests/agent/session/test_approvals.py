"""Approvals: facts that changed make a yes void, and a user may decide later, here or in another process."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

import constitution
from agent import Agent, ScriptedModel, answer, call, resume
from agent.cli.prompt import StandingAnswers
from agent.effects.approval import UndecidableError
from agent.presets import DEFAULT
from agent.presets.configuration import read_user_rules
from agent.presets.equipment import equip
from agent.session.agent import Run
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import ActionChanged, ApprovalAsked, FactsConfirmed, GateRejected, ToolStarted
from agent.vocabulary.messages import ToolMessage
from bp.runner import LATER
from tests.agent.conftest import MakeAgent
from tests.agent.soundness import replayed

pytestmark = pytest.mark.anyio

Meanwhile = Callable[[], object]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for folder in ("out", "elsewhere"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture(params=["on", "off"])
def answered(request: pytest.FixtureRequest, make_agent: MakeAgent, workspace: Path) -> Any:
    """A function that runs one command, with and without a sandbox; each `meanwhile` happens before the next yes."""

    async def answered(command: str, *meanwhile: Meanwhile, threads: Any = (), preset: Any = DEFAULT) -> Run:
        preset, left = evolve(preset, sandbox=request.param), list(meanwhile)

        def approve(_: ApprovalAsked) -> bool:
            if left:
                left.pop(0)()
                return True
            return not meanwhile

        tools = equip(preset, workspace)
        steps = [call("bash", command=command), "Done."]
        agent = make_agent(*steps, tools=tools, preset=preset, approve=approve, threads=threads)
        return await agent.run("Go")

    return answered


def of_kind(run: Run, kind: Any) -> list[Any]:
    return [event for event in run.events if isinstance(event, kind)]


def pointed(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


async def test_a_yes_to_facts_that_have_not_changed_is_a_yes(answered: Any, home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")

    run = await answered("cp a.txt ~/out/a.txt")

    assert (home / "out" / "a.txt").read_text() == "alpha"
    assert len(of_kind(run, ApprovalAsked)) == len(of_kind(run, FactsConfirmed)) == 1


async def test_a_link_that_leads_elsewhere_since_the_question_makes_the_yes_void(
    answered: Any, home: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("alpha")
    pointed(home / "target", home / "out")

    run = await answered("cp a.txt ~/target/b.txt", lambda: pointed(home / "target", home / "elsewhere"))

    first, second = of_kind(run, ApprovalAsked)
    assert "changed" not in first.question
    told = f"{home}/target/b.txt leads to {home}/elsewhere/b.txt, not to {home}/out/b.txt"
    assert f"changed since your yes: {told}" in second.question.splitlines()
    assert told in of_kind(run, ActionChanged)[0].changes
    assert of_kind(run, ToolStarted) == []
    assert [*(home / "elsewhere").iterdir(), *(home / "out").iterdir()] == []


async def test_a_script_that_has_other_content_is_asked_about_again(answered: Any, home: Path, workspace: Path) -> None:
    """Also where only a part of the command is asked about, and its text says nothing about the script."""
    (workspace / "build.sh").write_text("echo built")

    run = await answered("sh build.sh > ~/out/log", lambda: (workspace / "build.sh").write_text("echo other"))

    assert of_kind(run, ActionChanged)[0].changes == (f"{workspace}/build.sh, which it would run, has other content",)
    assert len(of_kind(run, ApprovalAsked)) == 2
    assert of_kind(run, ToolStarted) == []


async def test_changed_facts_are_judged_anew_and_may_be_denied(answered: Any, home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")
    (home / ".ssh").mkdir()
    pointed(home / "target", home / "out")

    run = await answered("cp a.txt ~/target/authorized_keys", lambda: pointed(home / "target", home / ".ssh"))

    assert len(of_kind(run, ApprovalAsked)) == 1
    assert [refusal.bthread for refusal in of_kind(run, GateRejected)[0].refusals] == ["by_constitution"]
    assert list((home / ".ssh").iterdir()) == []


async def test_facts_that_change_again_and_again_end_the_questions(answered: Any, home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")
    targets = [home / name for name in ("out", "elsewhere", "out", "elsewhere")]
    pointed(home / "target", home / "elsewhere")

    run = await answered("cp a.txt ~/target/b.txt", *[lambda to=to: pointed(home / "target", to) for to in targets])

    assert len(of_kind(run, ApprovalAsked)) == 3
    assert "changes again and again" in str(of_kind(run, GateRejected)[0].refusals)
    assert of_kind(run, ToolStarted) == []


@pytest.mark.slow
async def test_a_rule_of_always_is_bound_to_the_content_of_the_program(
    make_agent: MakeAgent, workspace: Path, home: Path, needs: Callable[[str], Path]
) -> None:
    """A rule that `always` wrote is bound to the content; where that has changed, the question says why it is put."""
    needs("make")
    (workspace / "Makefile").write_text("deploy:\n\t@echo deployed\n")
    rules = home / "rules"
    standing = StandingAnswers(constitution.DEFAULT, rules)
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return "always allowed from now on" in standing.add(question.call)

    async def deploy() -> Run:
        preset = evolve(DEFAULT, commands=tuple(map(str, read_user_rules(rules))))
        steps = [call("bash", command="make deploy"), "Done."]
        agent = make_agent(
            *steps, preset=preset, approve=approve, on_step=lambda step: standing.see(step.event),
            tools=equip(preset, workspace),
        )  # fmt: skip
        return await agent.run("Go")

    assert [of_kind(await deploy(), ToolStarted) != [] for _ in range(2)] == [True, True]
    assert len(asked) == 1
    assert os.path.exists(rules)
    (workspace / "Makefile").write_text("deploy:\n\t@echo gone\n")
    await deploy()
    assert "you allowed 'make deploy' always, and what it runs has changed since" in asked[1].question


# Approval that comes later: the run rests, and goes on when a user has decided, here or in another process


RISKY = "touch .git/config; touch ran.txt"
ASKING = answer("May I?", call("bash", command=RISKY).with_id("risky"))


@pytest.fixture
def tools(workspace: Path) -> tuple[Tool, ...]:
    return workspace_tools(workspace, timeout=100)


def results(agent: Agent) -> list[str]:
    return [message.text for message in agent.messages if isinstance(message, ToolMessage)]


async def test_the_run_rests_when_a_person_has_to_decide(make_agent: MakeAgent, workspace: Path) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")

    run = await agent.run("Go")

    assert (run.status, run.reason, run.ended) == ("waiting", "", None)
    assert [asked.call.id for asked in run.waiting_for] == ["risky"]
    assert not (workspace / "ran.txt").exists()

    agent.decide("risky", True)
    run = await agent.run()

    assert (run.status, run.text, run.waiting_for) == ("completed", "Done.", ())
    assert (workspace / "ran.txt").exists()


async def test_other_calls_go_on_meanwhile(make_agent: MakeAgent, workspace: Path) -> None:
    """With calls in parallel, only those that wait are held up, and those that may change files wait together."""
    preset = evolve(DEFAULT, sequential=False)
    (workspace / "safe.txt").write_text("safe")
    both = [call("bash", command=RISKY).with_id("risky"), call("read_file", path="safe.txt").with_id("safe")]
    agent = make_agent(both, "Done.", approve="later", preset=preset, sound=False)

    run = await agent.run("Go")

    assert run.status == "waiting"
    assert [step.event.name for step in run.steps].count("tool_finished") == 1
    agent.decide("risky", False)
    assert (await agent.run()).status == "completed"
    assert results(agent)[1].startswith("safe")


@pytest.mark.parametrize("yes", [True, False])
async def test_another_process_goes_on_with_the_decision(
    make_agent: MakeAgent, tools: tuple[Tool, ...], workspace: Path, tmp_path: Path, yes: bool
) -> None:
    log = tmp_path / "resting.jsonl"
    agent = make_agent(ASKING, "Done.", approve="later", sound=False, log=log)
    await agent.run("Go")
    agent.close()
    at_rest = log.read_bytes()

    with resume(log, ScriptedModel(["Done."]), tools) as resumed:
        resumed.decide("risky", yes, "" if yes else "not on a Friday")
        run = await resumed.run()

        assert run.status == "completed"
        assert (workspace / "ran.txt").exists() is yes
        assert yes or "the user said no (not on a Friday)" in results(resumed)[0]
        assert replayed(resumed).difference is None
    assert log.read_bytes().startswith(at_rest)


async def test_a_decision_about_no_open_question_is_an_error(make_agent: MakeAgent) -> None:
    first = [call("bash", command="ls").with_id("safe"), call("bash", command="rm -rf /").with_id("denied")]
    agent = make_agent(first, ASKING, "Done.", approve="later")
    await agent.run("Go")

    def refused(call: str) -> str:
        with pytest.raises(UndecidableError) as raised:
            agent.decide(call, True)
        return str(raised.value)

    assert refused("nosuch") == "there is no call 'nosuch' in this run; waiting: risky"
    for answered in ("safe", "denied"):
        assert refused(answered) == f"the call {answered!r} was answered already; waiting: risky"
    agent.decide("risky", False)
    assert refused("risky") == "the call 'risky' has been decided already"
    await agent.run()
    assert refused("risky").startswith("there is no call 'risky'")
    assert not any(isinstance(event, ToolStarted) for event in (await agent.run("And now")).events)


@pytest.mark.parametrize("verb", ["stop", "abort"])
async def test_a_run_that_rests_can_be_ended(make_agent: MakeAgent, verb: str) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")
    await agent.run("Go")

    async with agent.start() as run:
        getattr(run, verb)()

    assert run.status == {"stop": "stopped", "abort": "aborted"}[verb]


async def test_a_prompt_has_to_wait_for_the_run_that_rests(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")
    run = await agent.run("Go")
    run.steer("By the way")

    with pytest.raises(RunError, match="a run rests; continue it"):
        await agent.run("And this")

    assert run.unheard == ("By the way",)
    agent.decide("risky", False)
    assert (await agent.run()).status == "completed"


async def test_only_a_run_that_rests_goes_on_without_a_prompt(make_agent: MakeAgent) -> None:
    """Found: a run that was continued while it went on broke its agent."""

    async def beside(_: object) -> str:
        with anyio.fail_after(5), pytest.raises(RunError, match="no run rests; give a prompt"):
            await agent.run()
        return "Done."

    agent = make_agent(beside)

    assert (await agent.run("Go")).text == "Done."


async def test_a_callback_may_say_later(make_agent: MakeAgent) -> None:
    said: list[Any] = [LATER, True]
    agent = make_agent(ASKING, "Done.", approve=lambda asked: said.pop(0))

    assert (await agent.run("Go")).status == "waiting"
    assert (await agent.run()).status == "completed"
