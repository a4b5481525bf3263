"""The status line: what it says, and that it makes way for everything else."""

import io

import pytest

from agent.cli.display import Display, Progress
from agent.cli.screen import Screen
from agent.projections.narration import StreamEvent
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    BackoffStarted,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, Usage
from bp import Event, Step

CALL = ToolCall("c1", "bash", {"command": "ls"})


def screen(*, colored: bool = True) -> Screen:
    return Screen(io.StringIO(), colored=colored, moves=colored, streams=colored, width=60)


def shown(on: Screen) -> str:
    assert isinstance(on.stream, io.StringIO)
    return on.stream.getvalue()


def test_it_says_turn_activity_tokens_and_time() -> None:
    now = [0.0]
    progress = Progress(screen(), lambda: now[0])
    assert progress.text() == ""

    events: list[tuple[float, Event]] = [
        (0.0, PromptGiven("go")),
        (1.0, InferenceRequested()),
        (3.0, InferenceFinished("d0", AssistantMessage(), (CALL,), usage=Usage(1000, 234))),
        (3.0, AnswerCommitted("d0", AssistantMessage(), (CALL,))),
        (4.0, ToolStarted(CALL)),
    ]
    told = []
    for now[0], event in events:
        progress.fold(event)
        told.append(progress.text())
    now[0] = 65.0
    told.append(progress.text())
    progress.fold(ToolFinished(CALL, "done"))
    told.append(progress.text())

    assert told[1] == "turn 1 · the model answers (0 s) · 1 s in all"
    assert told[-2] == "turn 1 · bash (61 s) · 1,234 tokens · 65 s in all"
    assert told[-1] == ""


def test_it_shows_the_latest_line_of_a_running_command() -> None:
    progress = Progress(screen(), lambda: 0.0)
    progress.fold(ToolStarted(CALL))

    told = []
    for piece in ("compiling\n", "linking\nrun", "ning\n\n"):
        progress.hear(StreamEvent("tool_execution_update", call=CALL, text=piece))
        told.append(progress.text().rpartition(" · ")[2])
    progress.fold(ToolFinished(CALL, "done"))
    progress.fold(ToolStarted(CALL))

    assert told == ["compiling", "run", "running"]
    assert progress.text().endswith("0 s in all")


def test_a_line_takes_the_place_of_the_status_line() -> None:
    on = screen()

    on.status("working")
    on.line("done")
    on.status("working again")

    assert shown(on).endswith("\x1b[2mworking\x1b[0m\n\r\x1b[K\x1b[1A\r\x1b[Kdone\n\x1b[2mworking again\x1b[0m\n")


def test_a_new_status_is_written_over_the_old_one_and_leaves_the_cursor_where_people_type() -> None:
    on = screen()

    on.status("one")
    on.status("two")

    assert shown(on).endswith("\x1b7\x1b[1A\r\x1b[K\x1b[2mtwo\x1b[0m\x1b8")


def test_there_is_none_without_colors_and_none_beside_an_open_question() -> None:
    plain, asking = screen(colored=False), screen()
    asking.ask("Approve?")
    before = shown(asking)

    plain.status("working")
    asking.status("working")

    assert (shown(plain), shown(asking)) == ("", before)


def test_a_status_is_never_longer_than_the_screen() -> None:
    on = screen()

    on.status("x" * 500)

    assert shown(on).count("x") == 59


def steps(*events: Event) -> list[Step]:
    return [Step(number, event, 1, "somebody") for number, event in enumerate(events, 1)]


def test_text_that_was_shown_as_it_came_is_not_shown_again() -> None:
    on = screen()
    display = Display(on, shows_final_text=True)
    asked, committed = steps(InferenceRequested(), AnswerCommitted("d0", AssistantMessage("One\ntwo."), ()))

    display.show(asked)
    for piece in ("\n", "One", "\ntw", "o.\x1b[2J"):
        display.stream(piece)
    display.show(committed)

    assert "\x1b[2J" not in shown(on)
    assert "\\x1b[2J" in shown(on)

    again = screen()
    display = Display(again, shows_final_text=True)
    display.show(asked)
    for piece in ("\n", "One", "\ntw", "o."):
        display.stream(piece)
    display.show(committed)
    assert shown(again).count("One") == 1
    assert display.has_streamed("One\ntwo.")


def test_text_of_an_answer_that_broke_off_does_not_count() -> None:
    on = screen()
    display = Display(on)
    asked, failed = steps(InferenceRequested(), InferenceFailed("d0", "gone"))

    display.show(asked)
    display.stream("I was about to")
    display.show(failed)

    assert "the answer broke off; what was shown of it does not" in shown(on)


@pytest.mark.parametrize(
    ("retry_after", "wait"), [(None, "in 1 s at most"), (3.0, "in 3 s"), (120.0, "in 120 s, the most that is waited")]
)
def test_a_failed_attempt_says_which_of_how_many_follows_and_when(retry_after: float | None, wait: str) -> None:
    on = screen(colored=False)
    display = Display(on, attempts=4)
    failed = InferenceFailed("d0", "http://x/v1 answered 429: slow down", retryable=True)

    for step in steps(InferenceRequested(), failed, BackoffStarted(2, retry_after)):
        display.show(step)

    said = " ".join(shown(on).split())
    assert f"http://x/v1 answered 429: slow down; attempt 3 of 4 follows {wait}" in said
