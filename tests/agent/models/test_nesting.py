"""JSON that comes in pieces is closed exactly when it could be whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.calls import Nesting

VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab"\\{}[]é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('"\\{x'), inner),
    max_leaves=6,
)


def closed_after(*pieces: str) -> bool:
    nesting = Nesting()
    for piece in pieces:
        nesting.feed(piece)
    return nesting.is_closed


@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), st.data())
def test_law_an_object_is_closed_at_its_end_and_nowhere_before(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(1, len(text) - 1))

    assert not closed_after(text[:cut])
    assert closed_after(text[:cut], text[cut:])
    assert closed_after(*text)


@pytest.mark.parametrize("text", ["}", "{}}", '{"a": "}', '{"a": "\\"}', "[{}"])
def test_what_is_not_closed(text: str) -> None:
    assert not closed_after(text)
    assert not closed_after(*text)
