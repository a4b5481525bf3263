"""The page of a run: one file, no network, nothing that a model wrote can act, and every b-thread's deeds."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import evolve

from agent import tool
from agent.effects.hooks import Hooks
from agent.history.playback import watch
from agent.log.reading import read_log
from agent.models.scripted import ScriptedModel, Step, answer, call
from agent.page import render_page
from agent.presets.shipped import PRESETS
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import GateApproved, ToolFinished
from agent.vocabulary.messages import AssistantMessage, Image, UserMessage
from bp import BThreadBody, bthread, sync

ATTACK = '</pre></td><script>alert(1)</script><img src=x onerror="alert(2)">\x00\x1b[31m\u202e\ud800'


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@bthread
def one_look_is_enough() -> BThreadBody:
    """Refuse everything after the first tool that ran."""
    yield sync(wait_for=ToolFinished)
    yield sync(refuse=GateApproved, because="one look is enough")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a run in which calls ran, waited for each other, and were refused."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text(ATTACK[:-1])
    script: list[Step] = [
        answer(ATTACK, call("read_file", path="a.txt"), call("bash", command="rm -rf /no/such/folder")),
        "Done.",
    ]
    path = tmp_path / "run.jsonl"
    with Agent(ScriptedModel(script), workspace_tools(workspace), threads=[one_look_is_enough()], log=path) as agent:
        agent.run_sync("Look <b>around</b>")
    return path


def test_a_page_needs_nothing_from_anywhere_and_runs_nothing(log: Path) -> None:
    page = render_page(read_log(log), [one_look_is_enough()])

    tags = Tags(page).found
    assert not {tag for tag, _ in tags} & {"script", "img", "iframe", "object", "link", "form", "base", "b\x3e"}
    assert all(not name.startswith("on") for _, attributes in tags for name in attributes)
    links = [value for _, attributes in tags for name, value in attributes.items() if name in ("href", "src")]
    assert links
    assert all(link and link.startswith("#step-") for link in links)
    policy = next(a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")


def test_what_was_written_is_shown_as_text_and_what_cannot_be_seen_as_escapes(log: Path) -> None:
    page = render_page(read_log(log))

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\\x00\\x1b[31m\\u202e" in page
    assert page.encode()


def test_every_step_has_a_row_and_every_part_of_the_conversation_leads_to_one(log: Path) -> None:
    run = read_log(log)

    tags = Tags(render_page(run)).found

    rows = [attributes["id"] for tag, attributes in tags if tag == "tr" and "id" in attributes]
    assert rows == [f"step-{record['step']}" for record in run.records]
    assert {a["href"] for t, a in tags if t == "a"} <= {f"#{row}" for row in rows}


def test_the_program_says_who_heard_who_held_and_who_waited(log: Path) -> None:
    watched = watch(read_log(log), [one_look_is_enough()])

    assert watched.problem is None
    described = next(moment for moment in watched.moments if moment.record["name"] == "action_described")
    assert [(held.requester, [by.bthread for by in held.blockers]) for held in described.held] == [
        ("carry_out", ["one_at_a_time"])
    ]
    assert "by_constitution" in described.heard


def test_a_refusal_names_who_and_why(log: Path) -> None:
    page = render_page(read_log(log), [one_look_is_enough()])

    assert "one_look_is_enough refused: one look is enough" in page
    assert "by_constitution refused: " in page
    assert re.search(r"<b>gate_rejected</b> <span [^>]*>call_2 ✕ one_look_is_enough, by_constitution<", page)


def test_without_its_protocol_a_page_says_what_it_does_not_know(log: Path) -> None:
    watched = watch(read_log(log))

    assert "one_look_is_enough" in str(watched.problem)
    assert len(watched.moments) == len(read_log(log).records)
    assert "one_look_is_enough refused" in render_page(read_log(log))


def test_a_log_that_was_changed_is_shown_with_the_step_where_it_differs(log: Path) -> None:
    lines = log.read_text().splitlines()
    changed = next(number for number, line in enumerate(lines) if '"gate_rejected"' in line)
    lines[changed] = lines[changed].replace("one look is enough", "because I say so")
    log.write_text("\n".join(lines) + "\n")

    watched = watch(read_log(log), [one_look_is_enough()])

    assert watched.problem == f"from step {changed} on the program does otherwise than its log"


def test_a_run_that_is_not_over_and_a_torn_line_are_told(log: Path) -> None:
    log.write_text("\n".join(log.read_text().splitlines()[:6]) + '\n{"step":')

    page = render_page(read_log(log))

    assert "the log ends before its run does" in page
    assert "torn" in page


ONE_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIXEL = Image("image/png", b64decode(ONE_PIXEL))


@tool
async def look() -> ToolResult:
    """Look."""
    return ToolResult("seen", images=(PIXEL,))


def test_what_people_said_hooks_found_and_limits_did_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    found = iter([["rather not"], []])
    hooks = Hooks(get_steering_messages=lambda: next(found, []))
    preset = evolve(PRESETS["default"], max_iterations=1, deadline=1000.0)
    history = (UserMessage("Before"), AssistantMessage("I remember."))
    script: list[Step] = [call("look"), call("look"), "never"]
    with Agent(ScriptedModel(script), [look], preset=preset, hooks=hooks, history=history, log=path) as agent:
        agent.run_sync(UserMessage("Go", (PIXEL,)))

    page = render_page(read_log(path))

    for words in ("2 earlier messages", "I remember.", "a hook has 1 message for steering", "rather not"):
        assert words in page
    assert "limit (max_iterations)" in page
    assert "Stopped: maximum iteration limit reached." in page
    images = [attributes["src"] for tag, attributes in Tags(page).found if tag == "img"]
    assert images
    assert all(str(source).startswith("data:image/png;base64,iVBOR") for source in images)
    assert "img-src data:" in page


def test_why_a_run_goes_on_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    found = iter([["And that."], []])
    with Agent(ScriptedModel(["One.", "Two."]), hooks=Hooks(get_follow_up_messages=lambda: next(found)), log=path) as a:
        a.run_sync("Go")

    page = render_page(read_log(path))

    assert "<b>continue_with_follow_ups</b>: a follow-up waits" in page


def test_the_last_answer_is_not_said_twice(log: Path) -> None:
    page = render_page(read_log(log))

    assert page.count("<pre>Done.</pre>") == 1
