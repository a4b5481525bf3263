"""`bpagent view`: a page beside the log, readable by its owner alone."""

import re
from pathlib import Path

import pytest

from tests.agent.cli.sessions import NOTHING_TODAY, Command, RunOf, Script, bash


@pytest.fixture
def log(recorded_log: Path) -> Path:
    return recorded_log


def test_the_page_lies_beside_the_log(command: Command, log: Path) -> None:
    said = command("view", log)

    page = log.with_suffix(".html")
    assert (said.code, said.out) == (0, f"{page}\n")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "echo hi" in page.read_text()


def test_a_page_takes_the_place_of_an_older_page_and_of_nothing_else(
    command: Command, log: Path, tmp_path: Path
) -> None:
    before, notes = log.read_bytes(), tmp_path / "notes.md"
    notes.write_text("kept")
    refused = {
        log: f"{log} is the log itself; name another file with --output",
        notes: f"{notes} is there and is no page; name another file",
        tmp_path: f"cannot write the page {tmp_path}: Is a directory; name another file",
        tmp_path / "no" / "x.html": f"cannot write the page {tmp_path}/no/x.html: No such file or directory; name",
    }

    assert [command("view", log, "--output", tmp_path / "x.html").code for _ in range(2)] == [0, 0]
    said = {path: command("view", log, "--output", path) for path in refused}

    assert {path: (each.code, each.out) for path, each in said.items()} == dict.fromkeys(refused, (2, ""))
    assert [each.err for path, each in said.items() if refused[path] not in each.err] == []
    assert (log.read_bytes(), notes.read_text()) == (before, "kept")


def test_several_logs_and_folders_of_logs_get_their_pages(command: Command, log: Path) -> None:
    other = log.with_name("other.jsonl")
    other.write_bytes(log.read_bytes())

    said, folder = command("view", log, other), command("view", log.parent)
    refused = [command("view", log, other, *more) for more in (("--output", "x"), ("--open",), ("--follow",))]

    pages = [str(path.with_suffix(".html")) for path in (log, other)]
    assert (said.code, said.out.split()) == (0, pages)
    assert (folder.code, sorted(folder.out.split())) == (0, sorted(pages))
    assert {each.code for each in refused} == {2}
    assert {each.err for each in refused} == {"bpagent: --output, --open and --follow are for one log; name one\n"}


def test_a_protocol_of_ones_own_is_asked_for_where_the_page_lacks_what_it_heard(
    command: Command, run_of: RunOf, tmp_path: Path
) -> None:
    rule, log = tmp_path / "mine.py", tmp_path / "own.jsonl"
    rule.write_text(
        "from bp import bthread, event, sync\n\n@bthread\ndef mine():\n    yield sync(wait_for=event('x'))\n"
    )
    mine = ("--protocol", f"{rule}:mine")
    command(*run_of("Done."), "--log", log, *mine)
    plain = tmp_path / "plain.jsonl"
    command(*run_of("Done."), "--log", plain)

    lacking, given, both = command("view", log), command("view", log, *mine), command("view", log, plain, *mine)

    assert (lacking.code, lacking.out) == (0, f"{log.with_suffix('.html')}\n")
    assert "which only its author can vouch for; give it again" in lacking.err
    assert f": --protocol {rule}:mine" in lacking.err
    assert (given.code, given.err, both.code, both.err) == (0, "", 0, "")


@pytest.mark.slow
def test_the_page_can_be_opened_at_once(
    process: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)

    monkeypatch.setenv("BROWSER", f"{browser} %s")

    said = process("view", log, "--open")

    assert said.code == 0
    assert (tmp_path / "opened").read_text() == f"file://{log.with_suffix('.html')}\n"


@pytest.mark.slow
def test_all_runs_have_their_pages_and_an_index_that_leads_to_them(
    command: Command, script: Script, workspace: Path, home: Path
) -> None:
    for prompt in ("first <task>", "second task"):
        model = script(bash("echo hi"), "Done.")
        assert command("run", prompt, "--model", model, "--workspace", workspace).code == 0

    said = command("view", "--all")

    index = home / ".bpagent" / "runs" / "index.html"
    assert (said.code, said.out) == (0, f"{index}\n")
    page = index.read_text()
    pages = re.findall(r'<a href="([^"]+)">(.*?)</a>', page)
    assert {prompt for _, prompt in pages} == {"second task", "first &lt;task&gt;"}
    assert all("echo hi" in (index.parent / name).read_text() for name, _ in pages)
    assert "script-src 'sha256-" in page
    assert command("view", "--all", "--output", "x.html").code == 2


def test_what_if_shows_both_decisions_side_by_side(command: Command, log: Path, tmp_path: Path) -> None:
    page, protocol = tmp_path / "changed.html", tmp_path / "holiday.py"
    protocol.write_text(NOTHING_TODAY)

    said = command("what-if", log, "--protocol", f"{protocol}:nothing_today", "--page", page)

    assert (said.code, said.err) == (0, f"bpagent: the page: {page}\n")
    row = re.search(r'<tr class="changed">(.*?)</tr>', page.read_text())
    assert row is not None
    assert re.findall(r'<b class="(\w+)">', row[1]) == ["good", "refused"]
    assert "echo hi" in row[1]
    assert "it is a holiday" in row[1]
    assert "<a " not in page.read_text()  # the run has no page yet
    command("view", log)
    command("what-if", log, "--policy", "strict", "--page", page)
    assert f'<a href="{log.with_suffix(".html").absolute().as_uri()}">' in page.read_text()
