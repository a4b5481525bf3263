"""Declared secrets stay out of the log, and the log still replays."""

import json
from base64 import b16encode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, resume
from agent.history.rebuilding import RebuildError
from agent.log.reading import LogError
from agent.log.redaction import Redaction
from agent.presets.equipment import equip
from agent.presets.shipped import PRESETS
from agent.tools.collections import workspace_tools
from agent.vocabulary.encoding import dump
from tests.agent.soundness import replayed

SECRET = 'tok"en-\nwxyzé'
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
    assert "wxyz" not in written
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

    assert "wxyz" not in log.read_text()


def test_the_mask_is_as_long_as_the_secret_and_names_it() -> None:
    redaction = Redaction({"A": "12345678", "LONG_ONE": "12345678-abcdefgh-12345678-abcdefgh"})

    assert redaction.data({"x": ["12345678!", 5, None]}) == {"x": ["REDACTED!", 5, None]}
    masked = redaction.data("12345678-abcdefgh-12345678-abcdefgh")
    assert (masked, len(masked)) == ("REDACTED_LONG_ONE_REDACTED_LONG_ONE", 35)
    assert redaction.data({"12345678": True}) == {"REDACTED": True}


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(LogError, match="'PIN' is too short"):
        Redaction({"PIN": "1234"})


@pytest.mark.parametrize("secret", ["sk-1234567890abcdef", "pässword?>~~", "8letters"])
def test_a_secret_is_masked_in_hex_and_in_base64_wherever_it_begins(secret: str) -> None:
    redaction = Redaction({"KEY": secret})
    for before in ("", "a", "bc", "user:", "Authorization: Basic "):
        content = f"{before}{secret} and more".encode()
        for written in (b64encode(content), urlsafe_b64encode(content), content.hex().encode(), b16encode(content)):
            text = redaction.data(written.decode())
            assert "REDACTED_K" in text
            assert len(text) == len(written)
            assert secret not in "".join(decoded(text))


def decoded(text: str) -> list[str]:
    """What is still to be read in an encoded text."""
    found = []
    for read in (bytes.fromhex, lambda text: urlsafe_b64decode(text.replace("_", "A") + "==")):
        with suppress(ValueError):
            found.append(read(text).decode("utf-8", "replace"))
    return found


def test_the_key_of_a_model_is_masked_and_need_not_be_given_again(
    make_agent: Callable[..., Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([call("bash", command="echo sk-of-the-provider"), "Done."])
    object.__setattr__(model, "api_key", "sk-of-the-provider")
    log = tmp_path / "log.jsonl"
    with Agent(model, workspace_tools(tmp_path), log=log) as agent:
        agent.run_sync("It is sk-of-the-provider")

    assert "sk-of-the-provider" not in log.read_text()
    assert '"secrets":[]' in log.read_text()
    resume(log, ScriptedModel([]), workspace_tools(tmp_path)).close()


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_shows_the_key_of_the_provider_to_a_command(
    preset: str, make_agent: Callable[..., Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider")
    monkeypatch.setenv("ALSO_THE_KEY", "sk-of-the-provider")
    monkeypatch.setenv("HARMLESS", "shown")
    chosen = evolve(PRESETS[preset], policy=None)
    tools = equip(chosen, tmp_path)
    name = next(tool.name for tool in tools if tool.command_in)
    commands = ("env", "export -p", "cat /proc/self/environ", "python3 -c 'import os; print(os.environ)'")

    run = make_agent(
        *(call(name, command=command) for command in commands), "Done.", tools=tools, preset=chosen
    ).run_sync("Go")

    assert "sk-of-the-provider" not in str(run.events)
    assert ("shown" in str(run.events)) == (chosen.env == "inherit")


@pytest.mark.parametrize("secret", ['s3cr"t\\ pass', "schlüssel-für-alles", "line\u2028end-of-it", "two\nlines of it"])
def test_a_secret_is_masked_in_a_line_however_json_writes_it(secret: str) -> None:
    redaction = Redaction({"K": secret})
    for data in (secret, {"a": [f"before {secret}"]}, {secret: 1}, {"arguments": json.dumps({"key": secret})}):
        line = redaction.line(dump(data))
        assert "REDACTED_K" in line
        assert secret not in str(json.loads(line))
    assert redaction.line('{"a":"b"}') == '{"a":"b"}'
