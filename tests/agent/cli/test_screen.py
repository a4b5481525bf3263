"""What is shown: text that cannot fake the screen, labels, colors, markdown, diffs, and a run as it happens."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from agent.cli.display import Display, Progress, changes, excerpt
from agent.cli.screen import Blocks, Screen, columns_of, visible, wrapped
from agent.page.wording import lasted
from agent.projections.state import StateTracker, Totals
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    BackoffStarted,
    CallAnswered,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    SnapshotRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, ToolResult, Usage
from bp import Event, Step
from constitution import Action
from constitution.action import PathUse
from tests.tables import rows


@rows(
    ("text", "shown"),
    [
        ("häßlich → 日本", "häßlich → 日本"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\u202e\u200b\ufeff\u00a0", "\\u202e\\u200b\\ufeff\\xa0"),
        ("\ud83d", "\\ud83d"),
    ],
)
def test_invisible_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    lines = excerpt("\n".join(map(str, range(100))), width=80)

    assert (lines[0], lines[-1], len(lines)) == ("0", "99", 13)
    assert lines[8] == "… 88 more lines"
    assert excerpt("x" * 90, width=10) == ["x" * 9 + "…"]
    assert excerpt("1\n[all of it is in /tmp/x]", width=20) == ["1", "[all of it is in", "/tmp/x]"]
    assert excerpt(f"[{'1, ' * 1000}1]", width=20)[4:] == []
    assert excerpt("日本語日本語", width=7) == ["日本語…"]


def test_a_duration_is_told_in_milliseconds_under_a_second_and_in_seconds_and_minutes_above() -> None:
    durations = {0.4: "0 ms", 340.2: "340 ms", 999.7: "1.0 s", 8075: "8.1 s", 59_949: "59.9 s", 59_951: "1 min 0 s"}

    assert {each: lasted(each) for each in durations} == durations
    assert lasted(3_725_000) == "62 min 5 s"


def test_lines_break_between_words_and_wide_characters_take_two_columns() -> None:
    text = "日本語のテキストはここで折り返される and a/very/long/path/that/stays/whole"

    lines = wrapped(text, 20)

    assert lines == ["日本語のテキストはこ", "こで折り返される and", "a/very/long/path/that/stays/whole"]
    assert columns_of(lines[0]) == 20


@rows(
    ("line", "lines"),
    [
        ("/undo      go back to before the last task", ["/undo      go back to before", "           the last task"]),
        ("    - path: the file, relative or absolute", ["    - path: the file, relative", "    or absolute"]),
        ("label    日本語のテキストはここで", ["label", "         日本語のテキストはこ", "         こで"]),
        ("It is done.  And there is no more of it.", ["It is done.  And there is no", "more of it."]),
    ],
)
def test_wrapped_lines_are_indented_below_their_beginning_or_label(line: str, lines: list[str]) -> None:
    assert wrapped(line, 30) == lines


def test_a_long_line_is_wrapped_on_a_terminal_unless_it_is_a_command() -> None:
    on_terminal, command, on_pipe = terminal(), terminal(), Screen(StringIO())
    text = f"bpagent resume {'x' * 20} --approve call_1 --because 'it is fine'"

    on_terminal.line(text)
    command.line(text, "action")
    on_pipe.line(text)

    assert [len(shown(screen).splitlines()) for screen in (on_terminal, command, on_pipe)] == [2, 1, 1]


def test_text_is_cut_into_blocks_of_markdown_in_whatever_pieces_it_comes() -> None:
    text = "One\ntwo.\n\n```python\na = 1\n\nb = 2\n```\n\nLast"
    for size in (1, 2, 7, 100):
        blocks = Blocks()
        found = [block for at in range(0, len(text), size) for block in blocks.add(text[at : at + size])]

        assert [*found, *blocks.finish()] == ["One\ntwo.", "```python\na = 1\n\nb = 2\n```", "Last"]


def test_markdown_is_rendered_under_its_label_and_no_link_hides_its_address() -> None:
    screen = terminal()

    screen.markdown("agent", "# Title\n\n**Bold** [here](http://evil.example)\n\n- one\x1b[2J", "agent")

    assert shown(screen) == ("agent    Title\n\n         Bold here (http://evil.example)\n\n          • one\\x1b[2J\n")


@pytest.fixture
def calc(tmp_path: Path) -> Path:
    (tmp_path / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return tmp_path / "calc.py"


@rows(
    ("tool", "arguments"),
    [
        ("edit", {"oldText": "a - b", "newText": "a + b"}),
        ("write_file", {"content": "def add(a, b):\n    return a + b\n"}),
        ("multi_edit", {"edits": [{"oldText": "a - b", "newText": "a * b"}, {"oldText": "a * b", "newText": "a + b"}]}),
    ],
)
def test_an_edit_or_a_write_is_shown_as_a_diff(tool: str, arguments: dict[str, object], calc: Path) -> None:
    facts = Action(tool, "write", "/ws", paths=(PathUse("calc.py", str(calc), "write"),))

    diff = changes(ToolCall("c", tool, {"path": "calc.py", **arguments}), facts)

    assert diff == ["@@ -1,2 +1,2 @@", " def add(a, b):", "-    return a - b", "+    return a + b"]


def test_incomparable_contents_have_no_diff(calc: Path, tmp_path: Path) -> None:
    def diff(path: Path, **arguments: object) -> list[str]:
        facts = Action("edit", "write", "/ws", paths=(PathUse("x", str(path), "write"),))
        return changes(ToolCall("c", "edit", {"path": "x", **arguments}), facts)

    assert diff(calc, oldText="not there", newText="") == []
    assert diff(tmp_path, content="a folder") == []
    assert diff(calc, content=3, edits=[4]) == []
    assert diff(calc) == []


# A run as it happens.

CALL = ToolCall("c1", "bash", {"command": "ls"})
OTHER = ToolCall("c2", "bash", {"command": "make"})


def terminal() -> Screen:
    return Screen(StringIO(), moves=True, streams=True, columns=60)


def display_on(screen: Screen, **options: Any) -> Display:
    return Display(screen, Totals(), StateTracker(), **options)


def shown(on: Screen) -> str:
    assert isinstance(on.stream, StringIO)
    return on.stream.getvalue()


def steps(*events: Event) -> list[Step]:
    return [Step(number, event, 1, "a b-thread") for number, event in enumerate(events, 1)]


def test_the_status_line_says_turn_activity_tokens_and_time() -> None:
    now = [0.0]
    totals = Totals()
    progress = Progress(totals, lambda: now[0])
    assert progress.text() == ""

    events: list[tuple[float, Event]] = [
        (0.0, PromptGiven("go")),
        (1.0, InferenceRequested()),
        (3.0, InferenceFinished("d0", AssistantMessage(), (CALL,), usage=Usage(1000, 234))),
        (3.0, AnswerCommitted("d0", AssistantMessage(), (CALL,))),
        (3.0, SnapshotRequested()),
        (4.0, ToolStarted(CALL)),
    ]
    told = []
    for now[0], event in events:
        totals.fold(event)
        progress.fold(event)
        told.append(progress.text())
    now[0] = 65.0
    told.append(progress.text())
    progress.fold(ToolFinished(CALL, ToolResult("done")))
    told.append(progress.text())

    assert told[1] == "turn 1 · the model answers (0 s) · 1 s in all"
    assert told[4] == "turn 1 · the workspace is kept before it may change (0 s) · 1,234 tokens · 3 s in all"
    assert told[-2] == "turn 1 · bash (61 s) · 1,234 tokens · 65 s in all"
    assert told[-1] == ""


def test_results_stand_with_their_calls_also_when_calls_run_side_by_side() -> None:
    screen = terminal()
    display = display_on(screen)
    third = ToolCall("c3", "bash", {"command": "rm -rf /"})

    for step in steps(
        AnswerCommitted("d0", AssistantMessage(), (CALL, OTHER, third)),
        ProposedAction(CALL),
        ProposedAction(OTHER),
        ToolFinished(OTHER, ToolResult("made", duration=8075.0)),
        ToolFinished(CALL, ToolResult("a.txt", duration=3.0)),
        CallAnswered("c2", ToolResult("made"), outcome="ran"),
        CallAnswered("c1", ToolResult("a.txt"), outcome="ran"),
        CallAnswered("c3", ToolResult("skipped: the user spoke"), outcome="skipped"),
    ):
        display.show(step)

    assert shown(screen).splitlines() == [
        "action   ls",
        "action   make",
        "         │ made",
        "         done in 8.1 s",
        "action   ls",
        "         │ a.txt",
        "         done in 3 ms",
        "action   rm -rf /",
        "skipped  the user spoke",
    ]


def test_the_output_of_a_tool_is_shown_while_it_runs_and_whole_on_demand() -> None:
    display = display_on(terminal())
    display.output("one\ntwo\nthr")
    display.output("ee\nfour")

    assert [line for _, line in display.live()] == [f"         │ {line}" for line in ("two", "three", "four")]

    (finished,) = steps(ToolFinished(CALL, ToolResult("one\ntwo")))
    display.show(finished)
    assert display.live() == []
    assert display.last_result == "one\ntwo"


def test_a_change_is_shown_once_before_it_is_made(calc: Path) -> None:
    screen = terminal()
    display = display_on(screen)
    edit = ToolCall("c1", "edit", {"path": "calc.py", "oldText": "a - b", "newText": "a + b"})
    facts = Action("edit", "write", "/ws", paths=(PathUse("calc.py", str(calc), "write"),))

    for step in steps(
        ProposedAction(edit), ActionDescribed(edit, facts), ToolFinished(edit, ToolResult("replaced\n@@ -2 +2 @@"))
    ):
        display.show(step)

    assert shown(screen).count("+    return a + b") == 1
    assert "replaced" not in shown(screen)


def test_an_error_of_a_tool_is_shown_to_its_end_where_the_advice_is() -> None:
    screen = terminal()
    text = f"nothing was found {'in this long story ' * 5}: write --help"

    for step in steps(ToolFinished(CALL, ToolResult(text, is_error=True))):
        display_on(screen).show(step)

    assert " ".join(shown(screen).replace("│", " ").split()).endswith("write --help error")


@rows(("last", "live", "times"), [("o.", "two.", 1), ("o.\x1b[2J", "two.\\x1b[2J", 2)])
def test_streamed_text_is_not_shown_again_unless_the_answer_is_another(last: str, live: str, times: int) -> None:
    screen = terminal()
    display = display_on(screen, shows_final_text=True)
    asked, committed = steps(InferenceRequested(), AnswerCommitted("d0", AssistantMessage("One\n\ntwo."), ()))

    display.show(asked)
    for piece in ("\n", "One", "\n\ntw", last):
        display.stream(piece)
    assert [line for _, line in display.live()] == [f"         {live}"]
    display.show(committed)

    assert "\x1b[2J" not in shown(screen)
    assert shown(screen).count("One") == times
    assert display.live() == []
    assert display.has_streamed("One\n\ntwo.") is (times == 1)


def test_half_an_answer_is_shown_once_and_said_to_be_half() -> None:
    screen = terminal()
    display, half = display_on(screen), AssistantMessage("Delete only the files that")

    for step in steps(AnswerCommitted("d0", half, (), "length"), RunEnded("failed", "length", half.text)):
        display.show(step)

    assert shown(screen).count("Delete only") == 1
    assert "failed (length)" in shown(screen)
    assert "the model's answer was cut off" in shown(screen)


def test_text_of_an_answer_that_broke_off_does_not_count() -> None:
    screen = terminal()
    display = display_on(screen)
    asked, failed = steps(InferenceRequested(), InferenceFailed("d0", "gone"))

    display.show(asked)
    display.stream("I was about to")
    display.show(failed)

    assert "agent    I was about to\nsystem   the answer broke off; what was shown of it does not" in shown(screen)


@rows(
    ("retry_after", "wait"), [(None, "in 1 s at most"), (3.0, "in 3 s"), (120.0, "in 120 s, the most that is waited")]
)
def test_a_failed_attempt_announces_the_number_and_time_of_the_next(retry_after: float | None, wait: str) -> None:
    on = terminal()
    display = display_on(on, attempts=4)
    failed = InferenceFailed("d0", "http://x/v1 answered 429: slow down", retryable=True)

    for step in steps(InferenceRequested(), failed, BackoffStarted(2, retry_after)):
        display.show(step)

    said = " ".join(shown(on).split())
    assert f"http://x/v1 answered 429: slow down retry attempt 3 of 4 follows {wait}" in said
