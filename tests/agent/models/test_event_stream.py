"""Bytes become events, in whatever pieces they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.model import ModelError
from agent.models.openai_model import LONGEST_EVENT, EventDecoder, WholeBody


def decode(*pieces: bytes) -> list[str]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + list(decoder.finish())


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\r\n\r\ndata:  b\r\rdata: c\n\r\n", ["a", " b", "c"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b": comment\n\n\n\nevent: x\nid: 1\nretry: 3\ndata: a\n\n", ["a"]),
        (b"data\n\n", [""]),
        (b"data: a", ["a"]),
        (b"data: a\n", ["a"]),
        (b"", []),
    ],
)
def test_events(stream: bytes, events: list[str]) -> None:
    assert decode(stream) == events
    assert decode(*(stream[at : at + 1] for at in range(len(stream)))) == events


@given(st.lists(st.sampled_from([b"data: \xc3\xa9", b"data:x", b"\n", b"\r\n", b"\r", b": y", b"event: z"])), st.data())
def test_law_the_pieces_do_not_matter(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))

    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert decode(*pieces) == decode(stream)


@pytest.mark.parametrize("flood", [b"x" * 100_000, b"data: " + b"x" * 100_000 + b"\n", b"data\n" * 1000])
def test_an_endless_event_is_an_error(flood: bytes) -> None:
    pieces = [flood] * (LONGEST_EVENT // len(flood) + 2)

    with pytest.raises(ModelError, match="more than 8,000,000 bytes in one event"):
        decode(*pieces)


def test_many_events_and_comments_are_none() -> None:
    decoder = EventDecoder()

    for _ in range(100):
        assert list(decoder.feed(b": " + b"x" * 100_000 + b"\n")) == []
        assert len(list(decoder.feed(b"data: " + b"x" * 100_000 + b"\n\n"))) == 1


def test_a_whole_body_is_one_event() -> None:
    body = WholeBody()

    assert [*body.feed(b"a\n\n"), *body.feed(b"b"), *body.finish()] == ["a\n\nb"]
