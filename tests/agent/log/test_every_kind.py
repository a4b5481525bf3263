"""A law of the log: an event of any kind, written as a record and read again, is equal."""

import json
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.log.reading import Decoder, LogError, recorded_kinds
from agent.vocabulary import events
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import record_line
from agent.vocabulary.events import OfRight, ProposedAction
from agent.vocabulary.messages import Image, ToolResult, Usage
from bp import Event, Refusal, Refusals, Step
from constitution import Action

CALL = ToolCall("c1", "note", {"text": "a"})
TEXTS, NUMBERS = st.text(max_size=8), st.floats(0, 9, width=16)
IMAGES = st.builds(Image, st.just("image/png"), st.binary(min_size=1, max_size=4))
PLAIN = st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=2)
RIGHTS = st.sampled_from(["connect example.org:443", "read /etc/hosts", "write /tmp/a\nb", "login github", "as-is"])

for of_type, values in (
    (Image, IMAGES),
    (ToolCall, st.just(CALL)),
    (ToolResult, st.builds(ToolResult, TEXTS, st.booleans(), st.lists(IMAGES, max_size=2), PLAIN, NUMBERS)),
    (Refusals, st.builds(lambda text: Refusals([Refusal("guard", text)]), TEXTS)),
    (Action, st.just(Action("note", "read", "/tmp"))),
    (Usage, st.builds(Usage, st.integers(0), st.integers(0), st.none() | NUMBERS, st.booleans())),
):
    st.register_type_strategy(of_type, values)

KINDS: list[Any] = [kind for kind in recorded_kinds().values() if kind.__module__ == events.__name__]


def any_of(kind: Any) -> st.SearchStrategy[Event]:
    """Events of a kind, with any values in its fields."""
    known = {Any: st.none(), float: NUMBERS, float | None: st.none() | NUMBERS}  # JSON has no infinity
    types = {each.name: each.type for each in attrs.fields(kind)}
    values = {name: known[of] if of in known else st.from_type(of) for name, of in types.items()}
    return st.builds(kind, **values | ({"right": RIGHTS} if issubclass(kind, OfRight) else {}))


def read_again(event: Event) -> Event:
    decoder = Decoder()
    for step in (Step(1, ProposedAction(CALL), 1, None), Step(2, event, 1, None)):
        record = json.loads(record_line(step))
        decoder.learn(record)
    return decoder.event(record)


def test_every_kind_is_public() -> None:
    assert {kind.__name__ for kind in KINDS} == {name for name in events.__all__ if name != "Event"}


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(KINDS).flatmap(any_of))
def test_an_event_of_any_kind_is_equal_after_it_was_written_and_read(event: Event) -> None:
    assert read_again(event) == event


def test_a_right_of_another_form_is_refused_where_it_is_made_and_where_it_is_read() -> None:
    with pytest.raises(ValueError, match="right"):
        events.RightGranted("c1", "everything")
    record = {"step": 1, "name": "right_granted", "data": {"owner": "c1", "right": "connect"}, "origin": "gate"}
    with pytest.raises(LogError, match=r"step 1: .*right"):
        Decoder().event(record)
