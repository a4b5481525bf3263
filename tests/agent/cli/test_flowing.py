"""Text that flows on is broken between words, in whatever pieces it comes, and nothing of it is lost."""

import textwrap
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.cli.screen import Flow

WORDS = st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=30)


@given(words=WORDS)
def test_words_that_come_one_by_one_are_wrapped_as_a_whole_text_is(words: list[str]) -> None:
    flow = Flow(4, 20, column=4)

    shown = "".join(flow.add([word if number == 0 else f" {word}"]) for number, word in enumerate(words))

    lines = textwrap.wrap(" ".join(words), 16, break_long_words=False)
    assert shown == "\n    ".join(lines)


@given(words=WORDS, cuts=st.sets(st.integers(0, 200)))
def test_whatever_the_pieces_are_the_words_are_the_same(words: list[str], cuts: set[int]) -> None:
    text, flow = " ".join(words), Flow(4, 20, column=4)
    ends = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]

    shown = "".join(flow.add([text[start:end]]) for start, end in pairwise(ends))

    assert shown.split() == words


def test_lines_and_what_they_are_indented_by_stay() -> None:
    flow = Flow(2, 12, column=2)

    assert flow.add(["one:", "  - two three four", ""]) == "one:\n    - two\n  three four\n  "
    assert flow.add(["", "five"]) == "\n  five"
    assert flow.add(["and-a-long-word"]) == "and-a-long-word"
