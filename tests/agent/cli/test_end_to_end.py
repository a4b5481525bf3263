"""The command with a real client against a real server that this project did not write: files, log, exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command

Llmock = Callable[..., str]


def calling(tool: str, number: int, after: bool, **arguments: object) -> dict[str, object]:
    call = {"id": f"call_{number}", "name": tool, "arguments": json.dumps(arguments)}
    return {"match": {"userMessage": "go", "hasToolResult": after}, "response": {"toolCalls": [call]}}


def saying(text: str) -> dict[str, object]:
    return {"match": {"userMessage": "go", "hasToolResult": True}, "response": {"content": text}}


def test_an_agent_writes_a_file_and_the_log_tells_how(
    process: Command, llmock: Llmock, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv(
        "OPENAI_BASE_URL", llmock(calling("write_file", 1, False, path="a.txt", content="hi\n"), saying("Written."))
    )
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-nobody")

    said = process("run", "go", "--model", "any", "--workspace", workspace, "--log", log)

    assert (said.code, said.out) == (0, "Written.\n")
    assert (workspace / "a.txt").read_text() == "hi\n"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert "name" not in records[0]
    assert all({"step", "super_step", "name", "data", "origin"} <= set(record) for record in records[1:])
    proposed, answered = (
        next(record["data"] for record in records[1:] if record["name"] == name)
        for name in ("proposed_action", "call_answered")
    )
    assert proposed["call"]["arguments"] == {"path": "a.txt", "content": "hi\n"}
    assert answered["call"] == proposed["call"]["id"] == "call_1"
    assert records[-1]["name"] == "run_ended"
    assert records[-1]["data"]["status"] == "completed"
    assert records[-1]["data"]["text"] == "Written."


def test_what_is_refused_reaches_the_model_and_not_the_disk(
    process: Command, llmock: Llmock, workspace: Path, tmp_path: Path
) -> None:
    base_url = llmock(calling("write_file", 1, False, path="../outside.txt", content="x"), saying("I see."))
    log = tmp_path / "log.jsonl"

    said = process("run", "go", "--model", f"{base_url}#any", "--workspace", workspace, "--log", log)

    assert (said.code, said.out) == (0, "I see.\n")
    assert not (tmp_path / "outside.txt").exists()
    assert '"rejected: by_constitution: deny: outside_allowed_paths' in log.read_text()


def test_a_run_with_a_real_model_replays_without_it(
    process: Command, command: Command, llmock: Llmock, workspace: Path, tmp_path: Path
) -> None:
    base_url = llmock(calling("bash", 1, False, command="echo hi"), saying("Done."))
    log = tmp_path / "log.jsonl"
    process("run", "go", "--model", f"{base_url}#any", "--workspace", workspace, "--log", log)

    said = command("replay", log)

    assert said.code == 0
    assert said.out.startswith("equal: ")
