"""Declared secrets stay out of the log, and the log still replays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, ScriptedModel, answer, call, resume
from agent.history.rebuilding import RebuildError
from agent.log.reading import LogError
from agent.log.writing import Redaction
from agent.tools.collections import workspace_tools
from tests.agent.soundness import replayed

SECRET = 'tok"en-\n1234é'
SECRETS = {"TOKEN": SECRET}


def run_with(log: Path, make_agent: Callable[..., Agent], **options: Any) -> Agent:
    command = f"echo '{SECRET}'; git reset --hard; curl -H 'Authorization: {SECRET}' https://example.com"
    steps = [answer(f"I use {SECRET}.", call("bash", command=command)), f"It was {SECRET}."]
    return make_agent(*steps, log=log, secrets=SECRETS, approve=lambda asked: f"no, {SECRET}", **options)


def test_a_secret_is_nowhere_in_the_log(make_agent: Callable[..., Agent], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    agent = run_with(log, make_agent, system_prompt=f"Use {SECRET}")

    run = agent.run_sync(f"The token is {SECRET}")

    assert run.text == f"It was {SECRET}."
    written = log.read_text()
    assert "1234" not in written
    assert "REDACTED_TOK" in written
    assert '"secrets":["TOKEN"]' in written
    assert replayed(agent).difference is None


def test_a_redacted_log_goes_on_with_the_secret_kept_out(
    make_agent: Callable[..., Agent], tmp_path: Path, workspace: Path
) -> None:
    log, tools = tmp_path / "log.jsonl", workspace_tools(workspace)
    agent = run_with(log, make_agent)
    agent.run_sync("Go")
    agent.close()

    with pytest.raises(RebuildError, match="keeps the secrets TOKEN out; give them again"):
        resume(log, ScriptedModel([]), tools)
    with resume(log, ScriptedModel([f"Still {SECRET}."]), tools, secrets=SECRETS) as resumed:
        resumed.run_sync(f"And {SECRET}?")

    assert "1234" not in log.read_text()


def test_the_mask_is_as_long_as_the_secret_and_names_it() -> None:
    redaction = Redaction({"A": "12345678", "LONG_ONE": "12345678-abcdefgh-12345678-abcdefgh"})

    assert redaction({"x": ["12345678!", 5, None]}) == {"x": ["REDACTED!", 5, None]}
    masked = redaction("12345678-abcdefgh-12345678-abcdefgh")
    assert (masked, len(masked)) == ("REDACTED_LONG_ONE_REDACTED_LONG_ONE", 35)
    assert redaction({"12345678": True}) == {"REDACTED": True}


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(LogError, match="'PIN' is too short"):
        Redaction({"PIN": "1234"})
