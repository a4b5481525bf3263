"""`bpagent view`: a page beside the log, readable by its owner alone; or of a run that goes on, decided there."""

import json
import re
import subprocess
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent.cli.view import Following
from agent.log.reading import read_log
from agent.page import render_page
from tests.agent.cli.sessions import (
    COMMAND,
    NOTHING_TODAY,
    PATIENCE,
    Command,
    OnTerminal,
    RunOf,
    Script,
    SlowTool,
    Start,
    Terminal,
    answers_in,
    bash,
)
from tests.agent.page.chromium import PROGRAM, chromium, data_of


def test_the_page_lies_beside_the_log(command: Command, recorded_log: Path) -> None:
    said = command("view", recorded_log)

    page = recorded_log.with_suffix(".html")
    assert (said.code, said.out) == (0, f"{page}\n")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "echo hi" in page.read_text()


def test_a_page_replaces_only_an_older_page(command: Command, recorded_log: Path, tmp_path: Path) -> None:
    before, notes = recorded_log.read_bytes(), tmp_path / "notes.md"
    notes.write_text("kept")
    refused = {
        recorded_log: f"{recorded_log} is the log itself; name another file with --output",
        notes: f"{notes} is there and is no page; name another file",
        tmp_path: f"cannot write the page {tmp_path}: Is a directory; name another file",
        tmp_path / "no" / "x.html": f"cannot write the page {tmp_path}/no/x.html: No such file or directory; name",
    }

    assert [command("view", recorded_log, "--output", tmp_path / "x.html").code for _ in range(2)] == [0, 0]
    said = {path: command("view", recorded_log, "--output", path) for path in refused}

    assert {path: (each.code, each.out) for path, each in said.items()} == dict.fromkeys(refused, (2, ""))
    assert [each.err for path, each in said.items() if refused[path] not in each.err] == []
    assert (recorded_log.read_bytes(), notes.read_text()) == (before, "kept")


def test_several_logs_and_folders_of_logs_get_their_pages(command: Command, recorded_log: Path) -> None:
    other = recorded_log.with_name("other.jsonl")
    other.write_bytes(recorded_log.read_bytes())

    said, folder = command("view", recorded_log, other), command("view", recorded_log.parent)
    refused = [command("view", recorded_log, other, *more) for more in (("--output", "x"), ("--open",), ("--follow",))]

    pages = [str(path.with_suffix(".html")) for path in (recorded_log, other)]
    assert (said.code, said.out.split()) == (0, pages)
    assert (folder.code, sorted(folder.out.split())) == (0, sorted(pages))
    assert {each.code for each in refused} == {2}
    assert {each.err for each in refused} == {"bpagent: --output, --open and --follow are for one log; name one\n"}


def test_a_page_without_a_custom_protocol_asks_for_it(
    command: Command, run_of: RunOf, tmp_path: Path, log: Path
) -> None:
    rule, plain = tmp_path / "mine.py", tmp_path / "plain.jsonl"
    rule.write_text(
        "from bp import bthread, event, sync\n\n@bthread\ndef mine():\n    yield sync(wait_for=event('x'))\n"
    )
    mine = ("--protocol", f"{rule}:mine")
    command(*run_of("Done."), "--log", log, *mine)
    command(*run_of("Done."), "--log", plain)

    lacking, given, both = (command("view", *words) for words in ((log,), (log, *mine), (log, plain, *mine)))

    assert (lacking.code, lacking.out) == (0, f"{log.with_suffix('.html')}\n")
    assert "which only its author can vouch for; give it again" in lacking.err
    assert f": --protocol {rule}:mine" in lacking.err
    assert (given.code, given.err, both.code, both.err) == (0, "", 0, "")


@pytest.mark.slow
def test_the_page_can_be_opened_at_once(
    process: Command, recorded_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)

    monkeypatch.setenv("BROWSER", f"{browser} %s")

    said = process("view", recorded_log, "--open")

    assert said.code == 0
    assert (tmp_path / "opened").read_text() == f"file://{recorded_log.with_suffix('.html')}\n"


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


def test_what_if_shows_both_decisions_side_by_side(command: Command, recorded_log: Path, tmp_path: Path) -> None:
    page, protocol = tmp_path / "changed.html", tmp_path / "holiday.py"
    protocol.write_text(NOTHING_TODAY)

    said = command("what-if", recorded_log, "--protocol", f"{protocol}:nothing_today", "--page", page)

    assert (said.code, said.err) == (0, f"bpagent: the page: {page}\n")
    row = re.search(r'<tr class="changed">(.*?)</tr>', page.read_text())
    assert row is not None
    assert re.findall(r'<b class="(\w+)">', row[1]) == ["good", "refused"]
    assert "echo hi" in row[1]
    assert "it is a holiday" in row[1]
    assert "<a " not in page.read_text()  # the run has no page yet
    command("view", recorded_log)
    command("what-if", recorded_log, "--policy", "strict", "--page", page)
    assert f'<a href="{recorded_log.with_suffix(".html").absolute().as_uri()}">' in page.read_text()


# `--follow`: a run that goes on, seen in a browser and decided there, by its user alone.


@pytest.fixture
def asking(run_of: RunOf, on_terminal: OnTerminal, workspace: Path, log: Path) -> Terminal:
    """A run on a terminal that asks whether it may push."""
    (workspace / ".env").write_text("SECRET=1\n")
    terminal = on_terminal(*run_of(bash("cat .env"), "Done."), "--log", log, NO_COLOR="1")
    terminal.wait_for("Approve command: cat .env")
    return terminal


@pytest.fixture
def address(start: Start, log: Path) -> Callable[[], str]:
    """Start to serve the page of the log; gives its address."""

    def serve() -> str:
        process = start("view", "--follow", log)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    return serve


def asked(address: str, place: str, method: str = "GET", body: object = None, **headers: str) -> tuple[int, str]:
    """Return status and text of an answer; headers win over those that a browser would send for the page itself."""
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    usual = {"Host": parts.netloc, "Origin": origin, "Content-Type": "application/json"}
    connection = HTTPConnection(parts.netloc, timeout=100)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, place, json.dumps(body) if body is not None else None, {**usual, **given})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def wait_for_question(running: "subprocess.Popen[str]") -> None:
    assert running.stderr is not None
    while "a page that takes the answer" not in (line := running.stderr.readline()):
        assert line


def test_the_following_page_has_the_lanes_and_marks_of_the_finished_page(recorded_log: Path) -> None:
    lines = recorded_log.read_bytes().splitlines(keepends=True)
    growing = recorded_log.with_name("growing.jsonl")
    growing.write_bytes(b"".join(lines[:10]))
    following = Following(growing)

    for whole in (10, 25, len(lines)):
        growing.write_bytes(b"".join(lines[:whole]))
        followed, viewed = following.page(), render_page(read_log(growing))
        assert "does otherwise" not in followed
        shown, expected = data_of(followed), data_of(viewed)
        assert {name for name in expected if shown[name] != expected[name]} == {"live"}
        assert len(shown["rows"]) == whole - 1


@pytest.mark.slow
def test_a_question_is_answered_on_the_page_as_in_the_terminal(
    asking: Terminal, address: Callable[[], str], log: Path, home: Path
) -> None:
    [socket] = (home / ".bpagent" / "control").iterdir()
    assert [path.stat().st_mode & 0o777 for path in (socket, socket.parent)] == [0o600, 0o700]
    place = address()
    path = urlsplit(place).path
    status, page = asked(place, path)
    assert status == 200
    assert '"open":{"call_1":["cat .env","cat would read .env\\na yes lets this one call read ' in page
    assert "does otherwise" not in page

    wrong = asked(place, f"{path}act", "POST", {"do": "approve", "call": "call_9"})
    right = asked(place, f"{path}act", "POST", {"do": "reject", "call": "call_1", "text": "not that\none"})

    assert json.loads(wrong[1]) == {"done": False, "why": "this question is not open"}
    assert json.loads(right[1]) == {"done": True}
    assert asking.end() == 0
    assert not socket.exists()
    assert "answered from outside: no, not that one" in asking.screen
    assert "not that one" in answers_in(log)[0]
    news = json.loads(asked(place, f"{path}news?rows=3&parts=1&evidence=0")[1])
    assert news["ended"] is True
    assert news["open"] == {}
    assert news["rows"][0]["step"] == 4


@pytest.mark.slow
def test_without_a_terminal_the_page_alone_can_answer_if_the_run_is_told_to_wait_for_it_and_after_a_crash(
    run_of: RunOf, start: Start, address: Callable[[], str], workspace: Path, log: Path
) -> None:
    (workspace / ".env").write_text("SECRET=1\n")
    words = run_of(bash("cat .env"), "Done.")
    killed = start(*words, "--log", log, "--approvals", "page", stdin=subprocess.PIPE)
    assert killed.stdin is not None
    killed.stdin.write("yes\n")  # a pipe is no person
    killed.stdin.close()
    wait_for_question(killed)
    killed.kill()
    killed.wait(PATIENCE)
    abandoned = address()
    assert json.loads(asked(abandoned, f"{urlsplit(abandoned).path}news")[1])["idle"] is True
    running = start("resume", log)  # which waits for the page as before
    wait_for_question(running)
    place = address()

    approved = asked(place, f"{urlsplit(place).path}act", "POST", {"do": "approve", "call": "call_1"})

    assert json.loads(approved[1]) == {"done": True}
    assert running.wait(PATIENCE) == 0
    assert answers_in(log) == ["SECRET=1\n"]


@pytest.mark.slow
def test_a_run_that_no_page_can_reach_does_not_wait_for_one(
    run_of: RunOf, process: Command, home: Path, log: Path
) -> None:
    (home / ".bpagent").mkdir()
    (home / ".bpagent" / "control").write_text("in the way")

    said = process(*run_of(bash("touch .git/config"), "Done."), "--log", log, "--approvals", "page")

    assert (said.code, said.out) == (0, "Done.\n")
    assert "no page can answer: " in said.err
    assert answers_in(log)[0].startswith("denied: no person present")


@pytest.mark.slow
def test_a_run_is_steered_and_stopped_from_the_page(
    run_of: RunOf, on_terminal: OnTerminal, slow_tool: SlowTool, address: Callable[[], str], log: Path
) -> None:
    terminal = on_terminal(*run_of(bash(slow_tool.command), "Done."), "--log", log, NO_COLOR="1")
    slow_tool.wait_for_start()
    place = address()

    for decision in ({"do": "steer", "text": "use port 8080"}, {"do": "stop"}):
        assert json.loads(asked(place, f"{urlsplit(place).path}act", "POST", decision)[1]) == {"done": True}
    slow_tool.let_finish()

    assert terminal.end() == 4
    assert "use port 8080" in log.read_text()


@pytest.mark.slow
def test_only_the_page_itself_with_its_token_gets_an_answer(
    run_of: RunOf, log: Path, command: Command, address: Callable[[], str]
) -> None:
    assert command(*run_of("Done."), "--log", log).code == 0
    place = address()
    path = urlsplit(place).path
    stop = {"do": "stop"}

    assert urlsplit(place).hostname == "127.0.0.1"
    assert len(path) > 30
    assert asked(place, path)[0] == 200
    refused = {
        "no token": asked(place, "/"),
        "another token": asked(place, f"/{'x' * (len(path) - 2)}/"),
        "below": asked(place, f"{path}../../etc/passwd"),
        "a name that leads here": asked(place, path, Host=f"evil.example:{urlsplit(place).port}"),
        "another page": asked(place, f"{path}act", "POST", stop, Origin="https://evil.example"),
        "another page of this machine": asked(place, f"{path}act", "POST", stop, Origin="http://127.0.0.1:1"),
        "no origin": asked(place, f"{path}act", "POST", stop, Origin=""),
        "a form": asked(place, f"{path}act", "POST", stop, Content_Type="text/plain"),
        "another site": asked(place, f"{path}act", "POST", stop, Sec_Fetch_Site="cross-site"),
        "too much": asked(place, f"{path}act", "POST", {"do": "steer", "text": "x" * 70_000}),
        "no decision by GET": asked(place, f"{path}act"),
    }
    assert {why: answer for why, answer in refused.items() if answer != (404, "")} == {}
    done = json.loads(asked(place, f"{path}act", "POST", stop)[1])
    assert done["why"].startswith("no run listens to decisions about")


@pytest.mark.slow
def test_a_tool_cannot_approve_the_calls_of_its_own_run(
    run_of: RunOf, on_terminal: OnTerminal, workspace: Path, log: Path
) -> None:
    sender = workspace / "sender.py"
    sender.write_text(
        "import sys\nsys.path[:] = sys.argv[2:]\nfrom pathlib import Path\nfrom agent.cli import control\n"
        "try:\n    control.send(Path(sys.argv[1]), {'do': 'stop'})\n"
        "except control.NotDelivered as why:\n    print(why)\n"
    )
    words = f"{COMMAND[0]} sender.py {log} {' '.join(filter(None, __import__('sys').path))}"
    terminal = on_terminal(*run_of(bash(words), "Done."), "--log", log, "--preset", "passthrough", NO_COLOR="1")

    assert terminal.end() == 0
    assert "what the run has started decides nothing about it" in answers_in(log)[0]


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="needs chromium: install chromium")
def test_the_page_grows_while_the_run_goes_on_and_approves(
    asking: Terminal, address: Callable[[], str], log: Path, tmp_path: Path
) -> None:
    with chromium(tmp_path / "profile") as browser:
        browser.show(address())
        before = browser.run("data.rows.length")
        assert browser.run("document.querySelector('.ask code').textContent") == "cat .env"

        browser.run("document.querySelector('.ask .yes').click()")
        browser.run("new Promise(done => { const look = () => data.ended ? done() : setTimeout(look, 50); look(); })")

        assert browser.run("data.rows.length") > before
        assert browser.run("document.querySelectorAll('.ask').length") == 0
        browser.run("ask()")
        assert browser.run("document.querySelector('.live').innerText") == "the run has ended"
        assert "SECRET=1" in browser.run("document.querySelector('main').innerText")
        assert browser.complaints == []
    assert asking.end() == 0
    assert answers_in(log) == ["SECRET=1\n"]


@pytest.mark.slow
def test_changes_are_undone_from_the_page_while_the_run_goes_on_and_the_model_is_told(
    run_of: RunOf, on_terminal: OnTerminal, address: Callable[[], str], workspace: Path, log: Path
) -> None:
    (workspace / ".env").write_text("SECRET=1\n")
    (workspace / "a").write_text("mine\n")
    words = run_of(bash("echo hers > a"), bash("cat .env"), "Done.")
    terminal = on_terminal(*words, "--log", log, NO_COLOR="1")
    terminal.wait_for("Approve command: cat .env")
    place = address()
    act = f"{urlsplit(place).path}act"

    done = [asked(place, act, "POST", {"do": "undo", "step": step})[1] for step in ("6", 999, 6)]

    assert [json.loads(each) for each in done] == [
        {"done": False, "why": "there is no such step"},
        {"done": False, "why": "no call that may change files came after step 999, so there is nothing to undo"},
        {"done": True},
    ]
    assert (workspace / "a").read_text() == "mine\n"
    asked(place, act, "POST", {"do": "reject", "call": "call_2"})
    assert terminal.end() == 0
    assert "I took back changes of files; look at these again before you go on: a" in log.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="needs chromium: install chromium")
def test_on_the_page_an_undo_is_confirmed_and_also_works_after_the_run(
    run_of: RunOf, command: Command, address: Callable[[], str], workspace: Path, log: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_text("mine\n")
    assert command(*run_of(bash("echo 'hers <b>' > a; seq 3 > new"), "Done."), "--log", log).code == 0
    with chromium(tmp_path / "profile") as browser:
        browser.show(address(), width=400)
        assert browser.run("document.documentElement.scrollWidth") <= 400
        for summary in (".files > details > summary", ".files details details summary"):
            browser.run(f"document.querySelector({summary!r}).click()")
        assert browser.run("document.querySelector('.files .diff').innerText") == "@@ -1 +1 @@\n-mine\n+hers <b>"
        assert browser.run("document.documentElement.scrollWidth") <= 400

        for answer, content in ((".no", "hers <b>\n"), (".yes", "mine\n")):
            browser.run("document.querySelector('.undo').click()")
            assert browser.run("document.querySelector('.live .ask b').innerText").startswith("Make the files")
            browser.run(f"document.querySelector('.live .ask {answer}').click()")
            assert browser.run("document.querySelectorAll('.live .ask').length") == 0
            if answer == ".yes":
                look = "const look = () => said.textContent ? done() : setTimeout(look, 20); look();"
                browser.run(f"new Promise(done => {{ {look} }})")
                assert browser.run("said.textContent") == "the files are what they were before step 6"
            assert (workspace / "a").read_text() == content
        assert not (workspace / "new").exists()
        assert browser.complaints == []
