"""Text that cannot fake the screen, labels where there are no colors, and colors where there are."""

import errno
from io import StringIO

import pytest

from agent.cli.display import action_of, command_of, excerpt, lasted
from agent.cli.screen import Screen, screen_on, visible
from agent.vocabulary.calls import ToolCall


@pytest.mark.parametrize(
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
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_labels_stand_before_the_first_of_several_lines() -> None:
    stream = StringIO()

    Screen(stream, width=30).labelled("agent", "one\ntwo words that are too many", "agent")

    assert stream.getvalue() == "agent    one\n         two words that are\n         too many\n"


def test_colors_are_for_terminals() -> None:
    class FakeTerminal(StringIO):
        def isatty(self) -> bool:
            return True

    assert screen_on(FakeTerminal(), {}).painted("no", "refused") == "\x1b[1;31mno\x1b[0m"
    assert screen_on(FakeTerminal(), {"NO_COLOR": "1"}).painted("no", "refused") == "no"
    assert screen_on(StringIO(), {}).painted("no", "refused") == "no"


def test_a_line_after_an_open_question_begins_anew() -> None:
    stream = StringIO()
    screen = Screen(stream)

    screen.ask("Well?")
    screen.line("stop")

    assert stream.getvalue() == "Well? \nstop\n"


def test_a_screen_that_is_gone_is_left_alone() -> None:
    class Closed(StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "gone")

    screen = Screen(Closed())
    screen.line("one")

    assert screen.is_gone


def test_a_call_is_told_whole_for_a_question_and_short_for_looking_on() -> None:
    long = ToolCall("c", "write_file", {"path": "a.txt", "content": "x" * 100})

    assert command_of(ToolCall("c", "bash", {"command": "ls"})) == "ls"
    assert command_of(ToolCall("c", "terminal", {"persistent": True, "command": "ls"})) == "ls"
    assert command_of(ToolCall("c", "read_file", {"path": "a.txt"})) == "read_file a.txt"
    assert command_of(long) == f'write_file path="a.txt" content="{"x" * 100}"'
    assert action_of(long) == 'write_file path="a.txt" content=(100 characters)'


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    lines = excerpt("\n".join(map(str, range(100))), width=80)

    assert (lines[0], lines[-1], len(lines)) == ("0", "99", 13)
    assert lines[8] == "… 88 more lines"
    assert excerpt("x" * 90, width=10) == ["x" * 9 + "…"]


def test_a_duration_is_told_in_milliseconds_under_a_second_and_in_seconds_and_minutes_above() -> None:
    durations = {0.4: "0 ms", 340.2: "340 ms", 999.7: "1.0 s", 8075: "8.1 s", 59_949: "59.9 s", 59_951: "1 min 0 s"}

    assert {each: lasted(each) for each in durations} == durations
    assert lasted(3_725_000) == "62 min 5 s"
