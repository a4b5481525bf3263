"""However a response is split, interleaved, numbered and named, the same calls come out."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.models.responses_stream import ResponseAssembly
from tests.agent.models.shapes import Event, added, ended, piece, whole

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["bash", "read"]), ARGUMENTS), min_size=1, max_size=4)
SAYS = st.sampled_from(["both", "id", "index", "changing ids", "neither"])
LEFT_OUT = st.sampled_from(["nothing", "announced", "streamed", "whole"])


@given(calls=CALLS, says=SAYS, left_out=LEFT_OUT, repeats=st.booleans(), random=st.randoms(use_true_random=False))
def test_law_any_splitting_interleaving_and_omission_gives_the_same_calls(
    calls: Any, says: str, left_out: str, repeats: bool, random: Any
) -> None:
    items = [_item(number, name, json.dumps(given)) for number, (name, given) in enumerate(calls)]
    streams = [_stream(number, item, says, left_out, repeats, random) for number, item in enumerate(items)]
    may_interleave = says in ("both", "id", "index") or (says == "changing ids" and left_out != "announced")

    events = _interleaved(streams, random) if may_interleave else [event for stream in streams for event in stream]

    assert _calls_of([*events, ended(output=items if repeats else [])]) == [
        (item["call_id"], item["name"], item["arguments"]) for item in items
    ]


def _item(number: int, name: str, arguments: str) -> Event:
    return {"type": "function_call", "call_id": f"call{number}", "name": name, "arguments": arguments}


def _stream(number: int, item: Event, says: str, left_out: str, repeats: bool, random: Any) -> list[Event]:
    """One call, cut at a random place; of what a stream says, only what is said once can be left out."""

    def place() -> tuple[str, int | None]:
        id = f"id{random.random()}" if says == "changing ids" else f"id{number}" if says in ("both", "id") else ""
        return id, number if says in ("both", "index", "changing ids") else None

    facts = {name: item[name] for name in ("call_id", "name")}
    text = item["arguments"]
    cut = random.randint(1, len(text) - 1)
    announced = [] if left_out == "announced" else [added(*place(), **facts)]
    streamed = [] if left_out == "streamed" else [piece(part, *place()) for part in (text[:cut], text[cut:])]
    finished = [] if left_out == "whole" else [whole(*place(), **facts, arguments=text)]
    return [*announced, *streamed, *finished]


def _interleaved(streams: list[list[Event]], random: Any) -> list[Event]:
    """Mix the streams; each begins after the one before it, which is what the order of calls is told by."""
    left = [list(stream) for stream in streams]
    merged = [stream.pop(0) for stream in left]
    while any(left):
        merged.append(random.choice([stream for stream in left if stream]).pop(0))
    return merged


def _calls_of(events: list[Event]) -> list[tuple[str, str, str]]:
    assembly = ResponseAssembly("m")
    for event in events:
        assembly.feed(event)
    return [(call.id, call.name, call.arguments) for call in assembly.answer().message.calls]
