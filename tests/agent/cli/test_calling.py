"""What people are told to type works where they type it."""

from pathlib import Path

import pytest

from agent.cli.arguments import called


def program_in(folder: Path) -> Path:
    program = folder / "bpagent"
    folder.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_by_name_where_that_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_in(tmp_path / "bin")
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent))

    assert called("view", "a b.jsonl") == "bpagent view 'a b.jsonl'"


@pytest.mark.parametrize("path", ["nothing", "other"])
def test_by_its_path_where_the_name_finds_nothing_or_another_program(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program_in(tmp_path / "bin")
    program_in(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["bin/bpagent"])
    monkeypatch.setenv("PATH", str(tmp_path / path))

    assert called("runs") == "bin/bpagent runs"


def test_by_name_where_it_was_not_started_as_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["-c"])

    assert called("runs") == "bpagent runs"
