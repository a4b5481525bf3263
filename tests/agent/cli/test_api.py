"""`--api responses`: the command over the other wire format, from the first request to a run that goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command
from tests.agent.models.hostile_server import Server
from tests.agent.models.shapes import ended, streamed, words


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def writing(path: str) -> tuple[dict[str, object], ...]:
    call = {"call_id": "a", "name": "write_file"}
    return (*streamed("x", 0, call, json.dumps({"path": path, "content": "hi"})), ended())


def test_a_run_over_the_responses_api_needs_no_key_where_the_server_needs_none(
    command: Command, server: Server, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.stream(*writing("a.txt"))
    server.stream(*words("responses", "Written."))
    where = ("--workspace", workspace, "--log", tmp_path / "log.jsonl")

    said = command("run", "go", "--model", "any", "--api", "responses", *where)

    assert (said.code, said.out) == (0, "Written.\n"), said.err
    assert (workspace / "a.txt").read_text() == "hi"
    assert [line for line, _, _ in server.requests] == ["POST /v1/responses HTTP/1.1"] * 2


def test_a_run_goes_on_over_the_wire_that_it_began_with(
    command: Command, server: Server, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    server.stream(*writing("a.txt"))
    server.stream(*words("responses", "Written."))
    where = ("--workspace", workspace, "--log", log)
    command("run", "go", "--model", f"{server.url}#any", "--api", "responses", *where)
    lines = log.read_text().splitlines(keepends=True)
    asked_again = [number for number, line in enumerate(lines) if '"name":"inference_requested"' in line][-1]
    log.write_text("".join(lines[: asked_again + 1]))
    server.stream(*words("responses", "Written, I think."))

    said = command("resume", log)

    assert (said.code, said.out) == (0, "Written, I think.\n"), said.err
    assert [line for line, _, _ in server.requests] == ["POST /v1/responses HTTP/1.1"] * 3
