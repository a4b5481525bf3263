"""However a stream is split and interleaved, the same calls come out."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.agent.models.streams import Piece, calls_of, piece

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["bash", "read", "x"]), ARGUMENTS), min_size=1, max_size=4)
SAYS = st.sampled_from(
    [
        ({"index", "id", "name"}, {"index"}, True),
        ({"index", "id", "name"}, {"index", "id", "name"}, True),
        ({"index", "id", "name"}, {"id"}, True),
        ({"id", "name"}, {"id"}, True),
        ({"id", "name"}, {"id", "name"}, True),
        ({"index", "name"}, {"index"}, True),
        ({"index", "name"}, {"index", "id"}, True),
        ({"id", "name"}, set(), False),
        ({"name"}, set(), False),
        ({"index", "id", "name"}, set(), False),
    ]
)


@given(calls=CALLS, says=SAYS, random=st.randoms(use_true_random=False))
def test_law_any_splitting_and_interleaving_assembles_to_the_same_calls(calls: Any, says: Any, random: Any) -> None:
    first, later, interleaved = says
    streams = [_stream(number, name, given, first, later, random) for number, (name, given) in enumerate(calls)]

    pieces = _interleave(streams, random) if interleaved else [piece for stream in streams for piece in stream]

    assembled = calls_of(pieces)
    if interleaved and "index" not in first:  # only an index tells an order other than that of the first pieces
        assert sorted(assembled) == sorted(_expected(calls, first | later))
    else:
        assert assembled == _expected(calls, first | later)


def _expected(calls: Any, said: set[str]) -> list[tuple[str, str, str]]:
    return [
        (f"id{number}" if "id" in said else "", name, json.dumps(given, ensure_ascii=False))
        for number, (name, given) in enumerate(calls)
    ]


def _stream(number: int, name: str, given: Any, first: set[str], later: set[str], random: Any) -> list[Piece]:
    """One call, cut at random places; at least two pieces, so that what is said later is said."""
    text = json.dumps(given, ensure_ascii=False)
    cuts = sorted(random.sample(range(1, len(text)), random.randint(1, min(4, len(text) - 1))))
    texts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    facts = {"index": number, "id": f"id{number}", "name": name}
    return [
        piece(text, **{key: facts[key] for key in (later if position else first)})
        for position, text in enumerate(texts)
    ]


def _interleave(streams: list[list[Piece]], random: Any) -> list[Piece]:
    left = [list(stream) for stream in streams]
    merged = []
    while any(left):
        merged.append(random.choice([stream for stream in left if stream]).pop(0))
    return merged
