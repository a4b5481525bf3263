"""Patterns that a whole text has to match: as `re` sees it, but in linear time."""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.automata import TextPattern
from agent.tools.schemas import Limits, Scalar

ATOMS = ["a", "b", "_", "-", ".", r"\d", r"\w", r"\W", "[ab]", "[^a]", "[]a]", r"[\w-]", r"\.", r"\x61", " ", "^", "$",
         r"\b", r"\B", "{", "}", "é", "a{,2}", r"\A", r"\Z"]  # fmt: skip
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "*?", "{2,}?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
        st.just("(|a)"),
    ),
    max_leaves=8,
)


@given(patterns, st.text("ab_-. é1{}", min_size=1, max_size=8))
@settings(max_examples=200)
def test_a_pattern_matches_what_re_matches(pattern: str, text: str) -> None:
    """Not where older Pythons and JSON Schema differ: `$` before a last line break, and `\\B` in an empty text."""
    expected = re.compile(pattern, re.ASCII).fullmatch(text) is not None

    assert TextPattern(pattern).matches(text) is expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a+)+b", "a" * 5000), ("^([a-z]+)*$", "a" * 5000 + "!"), ("(a|a)*b", "a" * 5000), ("(.*)*(.*)*x", "a" * 5000),
     ("(a?){500}a{500}", "a" * 499)],
)  # fmt: skip
def test_no_pattern_takes_for_ever(pattern: str, text: str) -> None:
    assert TextPattern(pattern).matches(text) is False


def test_what_takes_too_long_is_not_told() -> None:
    pattern, text = TextPattern("(a|b)*a(a|b){1000}"), "".join(Random(1).choices("ab", k=5000))

    assert pattern.matches(text) is None
    (problem,) = Scalar("string", Limits(pattern=pattern.pattern)).problems(text, "name")
    assert problem.endswith(", which takes too long to tell; give a shorter one")


def test_a_long_text_is_no_burden() -> None:
    assert TextPattern(r"[a-z]+(-[a-z]+)*").matches("ab-" * 300_000 + "c") is True


def test_the_end_is_the_end() -> None:
    assert TextPattern("a$").matches("a\n") is False
    assert TextPattern("a$\n").matches("a\n") is False


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("[", "no regular expression"), (r"(a)\1", "at position 3, which is not"),
     ("(?=a)a", r"holds '\(\?' at position 0"),
     ("(?i)a", r"holds '\(\?'"), ("a++", r"holds '\+\+' at position 1"), ("a{2}+", r"holds '\{2\}\+'"),
     ("(?>a)", "not supported"), ("(?P=x)", "no regular expression"),
     ("((a{1000}){1000}){1000}", "more than 10000 steps"),
     ("(((){9999}){9999}){9999}", "more than 10000 steps"), ("a" * 10_001, "more than 10000 characters"),
     ("(" * 101 + ")" * 101, "more than 100 groups")],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_at_once(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TextPattern(pattern)
