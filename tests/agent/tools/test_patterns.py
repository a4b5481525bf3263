"""Patterns that a whole text has to match: in linear time, whatever the expression."""

import pytest

from agent.tools.patterns import TextPattern


@pytest.mark.parametrize(
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
    assert TextPattern(pattern).matches(text) is matches


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*(.*)*x", "^([a-z]+)*$!"])
def test_no_pattern_takes_forever(pattern: str) -> None:
    assert TextPattern(pattern).matches("a" * 5000) is False


@pytest.mark.parametrize("pattern", ["[", r"(a)\1", "(?=a)a", "a" * 100_001])
def test_what_cannot_be_followed_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        TextPattern(pattern)
