"""The page of a run: one file, no network, nothing that a model wrote can act, and every b-thread's deeds."""

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from agent import tool
from agent.effects.loop import Hooks
from agent.history.playback import shadow_of
from agent.log.reading import read_log
from agent.log.writing import lock
from agent.models.scripted import ScriptedModel, Step, answer, call
from agent.page import program_page, render_page
from agent.page.counterexample import verification_page
from agent.page.model import Tree, tree_of
from agent.presets import PRESETS
from agent.session.agent import Agent
from agent.tools.collections import create_all_tools, workspace_tools
from agent.verification.counterexample import finding
from agent.vocabulary.events import GateApproved, ToolFinished
from agent.vocabulary.messages import AssistantMessage, Image, ToolResult, UserMessage
from bp import BProgram, BThread, BThreadBody, Event, bthread, event, sync, verify, where
from tests.agent.page.chromium import data_of
from tests.bp.programs import philosophers

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


def told(page: str) -> str:
    """What stands in the conversation."""
    return "\n".join(f"{part['label']}: {part['text']}" for part in data_of(page)["parts"])


def test_a_page_needs_nothing_from_anywhere_and_runs_one_script_that_is_known(log: Path) -> None:
    page = render_page(read_log(log), [one_look_is_enough()])

    tags = Tags(page).found
    assert not {tag for tag, _ in tags} & {"img", "iframe", "object", "link", "form", "base"}
    assert all(not name.startswith("on") for _, attributes in tags for name in attributes)
    assert not [name for _, attributes in tags for name in attributes if name in ("href", "src", "style")]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    assert page.count("<script") == 2
    digest = b64encode(sha256(script[1].encode()).digest()).decode()
    policy = next(a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert f"script-src 'sha256-{digest}'" in str(policy)
    assert "unsafe" not in str(policy)
    assert "connect-src" not in str(policy)


def test_written_text_is_shown_as_text_and_invisible_characters_as_escapes(log: Path) -> None:
    page = render_page(read_log(log))

    assert "refused: b-thread one_look_is_enough: one look is enough" in told(page)  # though it is not given
    assert told(page).count("Done.") == 1  # also at the end
    assert "<script>alert(1)" not in page
    assert "\\x00\\x1b[31m\\u202e" in told(page)
    assert page.encode()


def test_every_step_has_a_row_and_every_part_of_the_conversation_leads_to_one(log: Path) -> None:
    run = read_log(log)

    data = data_of(render_page(run))

    assert [row["step"] for row in data["rows"]] == [record["step"] for record in run.records]
    assert {part["row"] for part in data["parts"]} <= set(range(len(data["rows"])))
    about = {row["name"]: data["parts"][row["part"]]["label"] for row in data["rows"] if "part" in row}
    assert about["proposed_action"] == about["action_described"] == about["tool_started"] == "action"
    assert about["call_answered"] in ("result", "told")


def test_a_watched_program_says_which_b_threads_heard_held_and_waited(log: Path) -> None:
    run = read_log(log)
    shadow = shadow_of(run, [one_look_is_enough()])
    moments = list(map(shadow.take, run.records))

    assert shadow.problem is None
    described = next(moment for moment in moments if moment.record["name"] == "action_described")
    assert [(held.requester, [by.bthread for by in held.blockers]) for held in described.held] == [
        ("carry_out", ["one_at_a_time"])
    ]
    assert "by_constitution" in described.heard


def test_a_refusal_names_who_and_why_and_the_words_that_it_rests_on(log: Path) -> None:
    page = render_page(read_log(log), [one_look_is_enough()])

    data = data_of(page)
    refused = next(row for row in data["rows"] if row["name"] == "gate_rejected")
    reasons = {data["lanes"][mark[0]]: mark[2] for mark in refused["marks"] if mark[1] == "x"}
    assert reasons["one_look_is_enough"] == "one look is enough"
    assert "would delete" in reasons["by_constitution"]
    assert refused["of"].endswith("✕ one_look_is_enough, by_constitution")
    texts = [data["parts"][part]["text"][start:end] for part, start, end in data["evidence"]]
    assert "rm -rf /no/such/folder" in texts


def test_a_log_that_was_changed_is_shown_with_the_step_where_it_differs(log: Path) -> None:
    lines = log.read_text().splitlines()
    changed = next(number for number, line in enumerate(lines) if '"gate_rejected"' in line)
    lines[changed] = lines[changed].replace("one look is enough", "because I say so")
    log.write_text("\n".join(lines) + "\n")

    page = render_page(read_log(log), [one_look_is_enough()])

    assert f"from step {changed} on the program does otherwise than its log" in page


def test_a_run_that_is_not_over_and_a_torn_line_are_told(log: Path) -> None:
    log.write_text("\n".join(log.read_text().splitlines()[:6]) + '\n{"step":')

    page = render_page(read_log(log))

    assert "the log ends before its run does" in page
    assert "torn" in page
    with log.open() as writing:
        lock(writing.fileno(), log)
        assert "not yet: the run goes on" in render_page(read_log(log))


ONE_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIXEL = Image("image/png", b64decode(ONE_PIXEL))


@tool
async def look() -> ToolResult:
    """Look."""
    return ToolResult("seen", images=(PIXEL,))


def test_the_page_shows_messages_of_people_and_hooks_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    found = iter([["rather not"], []])
    hooks = Hooks(get_steering_messages=lambda: next(found, []))
    preset = evolve(PRESETS["default"], max_iterations=1, deadline=1000.0)
    history = (UserMessage("Before"), AssistantMessage("I remember."))
    script: list[Step] = [call("look"), call("look"), "never"]
    with Agent(ScriptedModel(script), [look], preset=preset, hooks=hooks, history=history, log=path) as agent:
        agent.run_sync(UserMessage("Go", (PIXEL,)))

    page = render_page(read_log(path))

    words = told(page)
    for expected in ("2 earlier messages", "I remember.", "a hook has 1 message for steering", "rather not"):
        assert expected in words
    assert "limit (max_iterations)" in page
    assert "Stopped: maximum iteration limit reached." in words
    images = [image for part in data_of(page)["parts"] for image in part.get("images", ())]
    assert images
    assert all(str(source).startswith("data:image/png;base64,iVBOR") for source in images)
    assert "img-src data:" in page


def test_a_change_of_a_file_is_shown_as_lines_that_go_and_lines_that_come(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.py").write_text("one\ntwo\nthree\n")
    script: list[Step] = [
        call("read_file", path="a.py"),
        call("write_file", path="a.py", content="one\n2\nthree\n"),
        call("write_file", path="a.py", content="one\n2\n3\n"),
        call("edit", path="a.py", oldText="2", newText="two"),
        "Done.",
    ]
    path = tmp_path / "run.jsonl"
    tools = [*workspace_tools(workspace), create_all_tools(workspace)["edit"]]
    with Agent(ScriptedModel(script), tools, log=path) as agent:
        agent.run_sync("Change it")

    data = data_of(render_page(read_log(path)))

    changes = [part["diff"] for part in data["parts"] if "diff" in part]
    assert changes == [
        ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"],
        ["@@ -1,3 +1,3 @@", " one", " 2", "-three", "+3"],
        ["@@ -1,3 +1,3 @@", " one", "-2", "+two", " 3"],
    ]
    assert [data["rows"][row]["name"] for row in data["turns"]] == ["prompt_given", *["inference_requested"] * 4]


def test_what_a_call_changed_in_files_folds_out_and_what_others_changed_is_told_apart(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a").write_text("one\n")
    script: list[Step] = [
        call("bash", command="echo two >> a; seq 1000 > long; mkdir many; touch many/{1..60}"),
        call("look"),
        call("bash", command="rm a; head -c 3000 /dev/zero | tr '\\0' x > wide; printf '\\0' > bytes"),
        "Done.",
    ]

    @tool(category="read")
    def look() -> str:
        """While the model looks, the user saves a file."""
        (workspace / "mine<img src=x>").write_text("<b>by the user\u202e</b>\n")
        return "seen"

    path = tmp_path / "run.jsonl"
    tools = [*workspace_tools(workspace), look]
    with Agent(ScriptedModel(script), tools, preset="coding", log=path) as agent:
        agent.run_sync("Change it")

    page = render_page(read_log(path))
    first, others, last = [part for part in data_of(page)["parts"] if "files" in part]

    kinds = [(row["kind"], row["path"], len(row["lines"]), row["more"]) for row in first["files"]]
    assert kinds[:3] == [("changed", "a", 3, 0), ("new", "long", 400, 601), ("new", "many/1", 1, 0)]
    assert kinds[50:] == [("", "12 more files changed", 0, 0)]
    assert first["files"][0]["lines"] == ["@@ -1 +1,2 @@", " one", "+two"]
    assert (first["kind"], first["undo"], others.get("undo")) == ("output", 6, None)
    assert others["text"] == "1 file changed since the last call, not by a call of this run"
    assert [(row["kind"], row["path"]) for row in others["files"]] == [("new", "mine<img src=x>")]
    assert others["files"][0]["lines"][1] == r"+<b>by the user\u202e</b>"
    assert "mine<img src=x>" not in page
    assert [(row["kind"], row["path"]) for row in last["files"]] == [
        ("deleted", "a"),
        ("new", "bytes"),
        ("new", "wide"),
    ]
    assert last["files"][1]["lines"] == ["  0 bytes, then 1 bytes"]
    assert len(last["files"][2]["lines"][1]) == 1000


def flat(tree: Tree) -> str:
    return "".join(child if isinstance(child, str) else flat(child) for child in tree[2:])


def test_markdown_hides_nothing_that_a_model_wrote_and_nests_in_bounds() -> None:
    texts = {
        "> " * 30 + "deep": "deep",
        "[it]: http://x 'defined'": "defined",
        "<!-- a comment -->": "a comment",
        "![shown](http://x/pixel 'titled')": "shown (http://x/pixel 'titled')",
        "[shown](javascript:alert(1))": "javascript:alert(1)",
        "```python and more\ncode\n```": "python and more\ncode",
        "*a " * 3000 + "a*" * 3000: "a a a",
    }

    assert {text[:40]: flat(tree_of(text)) for text, shown in texts.items() if shown not in flat(tree_of(text))} == {}
    assert all(json.dumps(tree_of(text)).count("]" * 70) == 0 for text in texts)


# The page of a plain program, without an agent.

HOT, COLD = event("hot"), event("cold")


@bthread
def alternate() -> BThreadBody:
    """Hold cold water back until it was hot, and the other way round."""
    while True:
        yield sync(wait_for=HOT, block=COLD)
        yield sync(wait_for=COLD, block=HOT)


@bthread
def add(what: Event, times: int) -> BThreadBody:
    """Add water."""
    for _ in range(times):
        yield sync(request=what)


def test_a_plain_program_has_the_page_that_runs_have() -> None:
    page = program_page([add(HOT, 2), add(COLD, 2), alternate().named("tap")], [HOT], title="Hot and cold")

    data = data_of(page)
    assert "<title>Hot and cold</title>" in page
    assert [row["name"] for row in data["rows"]] == ["hot", "cold", "hot", "cold", "hot", "idle"]
    lane = data["lanes"].index("tap")
    assert [lane, "b", "cold of add(cold, 2)"] in data["rows"][2]["marks"]
    assert [lane, "h"] in data["rows"][2]["marks"]


@frozen
class Take(Event):
    who: int
    fork: int


@bthread
def eat(who: int, first: int, second: int) -> BThreadBody:
    """Take two forks, and keep them."""
    for fork in (first, second):
        yield sync(request=Take(who, fork))


@bthread
def fork(number: int) -> BThreadBody:
    """Be taken once."""
    yield sync(wait_for=where(Take, fork=number))
    yield sync(block=where(Take, fork=number))


EATERS = [eat(7, 1, 2), eat(8, 2, 1), fork(1), fork(2)]


def rows_of(page: str) -> list[tuple[str, str, set[tuple[str, ...]]]]:
    """Return each row of a page: its name, what stands behind it, and its marks with the names of their lanes."""
    data = data_of(page)
    lanes = data["lanes"]
    return [(row["name"], row["of"], {(lanes[lane], *rest) for lane, *rest in row["marks"]}) for row in data["rows"]]


def test_a_plain_program_that_is_stuck_ends_with_who_is_in_the_way() -> None:
    deadlock = verify(*EATERS).violations[0]

    *steps, (name, of, marks) = rows_of(program_page(EATERS, trace=deadlock.trace))

    assert [name for name, _, _ in steps] == ["Take(who=7, fork=1)", "Take(who=8, fork=2)"]
    assert steps[0][2] >= {("eat(7, 1, 2)", "q"), ("fork(1)", "h")}
    assert (name, of) == ("blocked", "nothing more happens: what is requested is held back")
    assert marks == {
        ("eat(7, 1, 2)", "w", "Take(who=7, fork=2)"),
        ("fork(2)", "b", "Take(who=7, fork=2) of eat(7, 1, 2)"),
        ("eat(8, 2, 1)", "w", "Take(who=8, fork=1)"),
        ("fork(1)", "b", "Take(who=8, fork=1) of eat(8, 2, 1)"),
    }


@bthread
def fails() -> BThreadBody:
    """Fail on hot water."""
    yield sync(wait_for=HOT)
    raise ValueError("burnt")


def test_the_page_of_a_plain_program_says_how_it_ended() -> None:
    def end(*bthreads: BThread, **options: Any) -> tuple[str, str]:
        name, of, _ = rows_of(program_page(bthreads, **options))[-1]
        return name, of

    assert end(add(HOT, 1)) == ("finished", "no b-thread is left")
    with pytest.raises(TypeError, match=r"bthreads=<BProgram: .*>: give a list, bthreads="):
        program_page(BProgram(add(HOT, 1)))  # type: ignore[arg-type]
    assert end(alternate()) == ("idle", "nothing is requested: it waits for what comes from outside")
    assert end(add(HOT, 1), fails()) == (
        "failed",
        "b-thread 'fails' failed on hot (step 1): ValueError: burnt",
    )
    assert end(add(HOT, 2), trace=[HOT]) == ("hot", "")
    assert end(alternate(), trace=[COLD])[1] == "event('cold') cannot be selected: alternate hold it back"


# The pages of verifications.


A, B = event("a"), event("b")


@bthread
def first_a_then_b() -> BThreadBody:
    yield sync(request=A)
    yield sync(request=B)


def test_a_deadlock_is_shown_with_the_way_there_and_with_who_is_in_the_way() -> None:
    page = verification_page(verify(*philosophers(2)), [], "Verified")

    data = data_of(page)
    names = [row["name"] for row in data["rows"]]
    assert names == ["philosopher 0 takes fork 0", "philosopher 1 takes fork 1", "deadlock"]
    last = {(data["lanes"][mark[0]], mark[1]) for mark in data["rows"][-1]["marks"]}
    assert {("philosopher 0", "w"), ("fork 1", "b")} <= last


@bthread
def waits_for_both() -> BThreadBody:
    yield sync(wait_for=A)
    yield sync(wait_for=B)
    raise ValueError("wrong")


def test_a_counterexample_draws_every_position_of_a_b_thread_and_marks_the_last() -> None:
    result = verify(first_a_then_b(), waits_for_both())
    page = verification_page(result, [waits_for_both()], "Verified")

    assert [label in page for label in ("wait for a", "wait for b", "ValueError: wrong")] == [True] * 3
    assert re.findall(r'<g class="([a-z ]+)" id="state-(\d)">', page) == [("bad here", "2")]
    [violation] = result.violations
    assert f'<p class="problem">{finding(violation)}</p>' in page


def test_a_verification_that_holds_draws_the_b_threads_in_question_and_runs_no_script() -> None:
    page = verification_page(verify(first_a_then_b()), [first_a_then_b()], "<First>")

    assert page.count("<figure") == 1
    assert "request a" in page
    assert '<b class="completed">holds</b>' in page
    assert "&lt;First&gt;" in page
    assert "<script" not in page


def test_a_b_thread_that_declares_no_events_is_drawn_with_those_that_are_given() -> None:
    assert verification_page(verify(first_a_then_b()), [waits_for_both()], "Verified").count('id="state-') == 1
    assert verification_page(verify(first_a_then_b()), [waits_for_both()], "Verified", [A, B]).count('id="state-') == 3


def test_a_search_that_ended_at_its_bound_says_where_and_how_to_go_on() -> None:
    page = verification_page(verify(*philosophers(3), max_states=5), [], "Verified")

    assert "not verified: there are more states than --max-states; only 5 states were looked at" in page
    assert "to go on: --max-states 50, or --alone" in page
