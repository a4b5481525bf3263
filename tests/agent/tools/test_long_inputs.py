"""What is long or made to be slow is looked at in linear time, or refused at once: none of this may take for ever.

Each of these calls would run for minutes to years if it went back and tried again, and hold the interpreter meanwhile.
"""

import pytest

from agent.tools.files.editing import edited
from agent.tools.files.search import LinePattern, make_glob, read_rules
from agent.tools.schemas import matches as fits
from agent.tools.shell import is_interactive
from agent.tools.web import to_format
from agent.vocabulary.errors import ToolError
from tests.tables import rows

MANY = 200_000


@rows(
    ("text", "wanted", "problem"),
    [("a" * 2 * MANY, "a" * MANY, "stands 100 times or more"), ("\n" * 2 * MANY + "x", "\n" * MANY + "y", "not found"),
     ("a" * 2 * MANY + "x", "a" * MANY + "y", "not found"), ("\r\n" * MANY, "\n" * (MANY // 2), "100 times or more")],
)  # fmt: skip
def test_a_text_that_nearly_stands_everywhere_is_looked_for_once(text: str, wanted: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        edited(text, wanted, "", "file")


def test_patterns_have_a_length_that_can_be_read() -> None:
    with pytest.raises(ToolError, match="4096 are the most"):
        make_glob("a" * 3_000_000)
    with pytest.raises(ValueError, match="100000 are the most"):
        LinePattern("a" * 3_000_000)


def test_several_stars_in_a_pattern_stay_linear() -> None:
    assert not make_glob("*a" * 12 + "*b", anywhere=True)("a" * 250)
    assert not make_glob("**/a/" * 12 + "b")("a/" * 40 + "c")
    assert read_rules(b"*a" * 20 + b"b").says("a" * 250) is None


def test_spaces_in_a_gitignore_file_are_counted_once() -> None:
    assert read_rules(b"a" + b" " * 1_000_000 + b"b").leave_out == ()
    assert read_rules(b"a   ").says("a")


@rows("command", [": " + "e" * 3_000_000, "a '" * 1_000_000, "sudo " * 600_000])
def test_whether_a_command_waits_is_guessed_from_its_beginning(command: str) -> None:
    assert not is_interactive(command)


@pytest.mark.slow
def test_a_page_that_closes_nothing_is_read_in_linear_time() -> None:
    parts = ("<", "<!--", "<a ", "<!", "<?", "<![CDATA[", '<a b="', "<a b='\">", "<script>", "&", "<div>")

    assert [
        part for part in parts if not to_format("begun " + part * 100_000, "text", is_html=True).startswith("begun")
    ] == []


# Patterns that a whole text has to match: in linear time, whatever the expression.


@rows(
    ("pattern", "text", "matches"),
    [
        ("[a-z]+(-[a-z]+)*", "ab-" * 300_000 + "c", True),
        ("a|ab", "ab", True),
        ("b", "abc", False),
        ("a$", "a\n", False),
        (r"\w+", "é", False),
        ("a", "\ud800", False),
    ],
)
def test_a_whole_text_matches_or_not(pattern: str, text: str, matches: bool) -> None:
    assert fits(pattern, text) is matches


@rows("pattern", ["(a+)+b", "(a|a)*b", "(.*)*(.*)*x", "^([a-z]+)*$!"])
def test_no_pattern_takes_forever(pattern: str) -> None:
    assert not fits(pattern, "a" * 5000)


@rows("pattern", ["[", r"(a)\1", "(?=a)a", "a" * 100_001])
def test_an_impossible_pattern_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        fits(pattern, "")
