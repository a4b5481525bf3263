"""What is asked, what counts as an answer, and what stops a run."""

import pytest

from agent.cli.prompt import approval_question, read_answer, says_stop


@pytest.mark.parametrize("line", ["yes", "y", "YES", "Y", " Yes \r"])
def test_yes_in_any_case_is_yes(line: str) -> None:
    assert read_answer(line) is True


@pytest.mark.parametrize("line", ["no", "n", "NO", "N", " No "])
def test_no_in_any_case_is_no(line: str) -> None:
    assert read_answer(line) is False


@pytest.mark.parametrize(
    "line", ["no, use wget instead", "NO,use wget instead", "n, use wget instead", "no: use wget instead \r"]
)
def test_a_no_with_a_reason_is_that_reason(line: str) -> None:
    assert read_answer(line) == "use wget instead"


@pytest.mark.parametrize("line", ["no,", "n, ", "No: "])
def test_a_no_whose_reason_is_empty_is_a_no(line: str) -> None:
    assert read_answer(line) is False


@pytest.mark.parametrize("line", ["", " ", "ye", "yes please", "not", "1", "ok"])
def test_anything_else_is_neither(line: str) -> None:
    assert read_answer(line) is None


@pytest.mark.parametrize("line", ["stop", "STOP", " Stop\r", "/stop", "/STOP "])
def test_a_line_that_is_stop_stops(line: str) -> None:
    assert says_stop(line)


@pytest.mark.parametrize(
    "line", ["", "unstoppable", "go on", "please do not stop at the first error", "stop!", "no, stop", "//stop"]
)
def test_a_line_that_only_contains_it_does_not(line: str) -> None:
    assert not says_stop(line)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls -la | grep 'ä'", "ls -la | grep 'ä'"),
        ("ls\nrm x", "ls\\nrm x"),
        ("ls\r\x1b[2K", "ls\\r\\x1b[2K"),
        ("ls \u202e\u200b\u2028", "ls \\u202e\\u200b\\u2028"),
        ("ls \ud800", "ls \\ud800"),
        ("ls \\n", "ls \\n"),
    ],
)
def test_the_question_is_one_line_with_the_command_as_proposed(command: str, shown: str) -> None:
    assert approval_question(command) == f"Approve command: {shown}? (yes/no)"
