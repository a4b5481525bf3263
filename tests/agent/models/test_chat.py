"""Every shape in which servers stream an answer assembles to the same answer, or to none."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.chat import LONGEST_ANSWER, Assembly
from agent.models.model import Answer, Delta, ModelError
from agent.vocabulary.messages import AssistantMessage, RequestedCall, Usage
from tests.agent.models.shapes import CALLS, delta, interleave
from tests.tables import rows

Piece = dict[str, Any]


def assemble(chunks: Iterable[object]) -> Answer:
    assembly = Assembly()
    for chunk in chunks:
        assembly.feed(chunk)
    return assembly.answer()


def piece(arguments: str | None = None, **said: Any) -> Piece:
    """A piece of a call: index, id and name where given, arguments where not None."""
    function = {
        key: value for key, value in (("name", said.pop("name", None)), ("arguments", arguments)) if value is not None
    }
    return {**said, "function": function} if function else said


def calls_of(pieces: Sequence[Piece], finish: str = "tool_calls") -> list[tuple[str, str, str]]:
    """The calls that pieces make, when each comes in a chunk of its own."""
    answer = assemble([*(delta(tool_calls=[piece]) for piece in pieces), delta(finish)])
    return [(call.id, call.name, call.arguments) for call in answer.message.calls]


A, B = '{"command": "ls"}', '{"path": "x"}'
TWO = [("a", "bash", A), ("b", "read", B)]

SHAPES = {
    "indices that do not begin in order": (
        [piece(B, index=1, id="b", name="read"), piece(A, index=0, id="a", name="bash")],
        TWO,
    ),
    "index as text": ([piece(A[:4], index="0", id="a", name="bash"), piece(A[4:], index="0")], TWO[:1]),
    "index late": ([piece(A[:5], id="a", name="bash"), piece(A[5:], id="a", index=0)], TWO[:1]),
    "same index for two calls, interleaved by id": (
        [
            piece(A[:5], index=0, id="a", name="bash"),
            piece(B[:3], index=0, id="b", name="read"),
            piece(A[5:], index=0, id="a"),
            piece(B[3:], index=0, id="b"),
        ],
        TWO,
    ),
    "same index for two calls, no id": (
        [piece(A, index=0, name="bash"), piece(B, index=0, name="read")],
        [("", "bash", A), ("", "read", B)],
    ),
    "same index for two calls, no id, no arguments": (
        [piece("", index=0, name="bash"), piece(B, index=0, name="read")],
        [("", "bash", ""), ("", "read", B)],
    ),
    "same index and name, no id": (
        [piece(A, index=0, name="bash"), piece(A, index=0, name="bash")],
        [("", "bash", A), ("", "bash", A)],
    ),
    "name repeated, no index, no id": (
        [piece(A[:5], name="bash"), piece(A[5:], name="bash"), piece(B, name="read")],
        [("", "bash", A), ("", "read", B)],
    ),
    "the whole call once more at the end": (
        [piece(A, index=0, id="a", name="bash"), piece(A, index=0, id="a", name="bash")],
        TWO[:1],
    ),
    "empty pieces after the whole call": (
        [
            piece(A, index=0, id="a", name="bash"),
            piece("", index=0, id="a", name="bash"),
            piece("", index=0),
            piece(index=0),
        ],
        TWO[:1],
    ),
    "late id, no index": ([piece(A[:5], name="bash"), piece(A[5:], id="a"), piece(B, id="b", name="read")], TWO),
    "late name": ([piece("", index=0, id="a"), piece(A, index=0, name="bash")], TWO[:1]),
    "name in pieces": (
        [piece("", index=0, id="a", name="ba"), piece("", index=0, name="sh"), piece(A, index=0)],
        TWO[:1],
    ),
    "name that grows": ([piece("", index=0, id="a", name="ba"), piece(A, index=0, id="a", name="bash")], TWO[:1]),
    "braces in a text, the name in every piece": (
        [piece(text, index=0, id="a", name="bash") for text in ('{"a": "}', "\\", '"}', "{}", '"', "}", " \n")],
        [("a", "bash", '{"a": "}\\"}{}"} \n')],
    ),
    "what only looks like an object": (
        [piece(text, index=0, id="a", name="bash") for text in ("{]}", "}")],
        [("a", "bash", "{]}}")],
    ),
    "an index late, and last": (
        [
            piece(A[:5], index=0, id="a", name="bash"),
            piece(B[:3], id="b", name="read"),
            piece(B[3:], index=1),
            piece(A[5:], id="a"),
        ],
        TWO,
    ),
    "no id, no index, same name": ([piece(A, name="bash"), piece(A, name="bash")], [("", "bash", A), ("", "bash", A)]),
    "null id": ([piece(A, index=0, id=None, name="bash")], [("", "bash", A)]),
    "duplicate id, interleaved": (
        [
            piece(A[:5], index=0, id="a", name="bash"),
            piece(B[:3], index=1, id="a", name="read"),
            piece(A[5:], index=0, id="a"),
            piece(B[3:], index=1, id="a"),
        ],
        [("a", "bash", A), ("a", "read", B)],
    ),
    "duplicate id, no index": (
        [piece(A, id="a", name="bash"), piece(B, id="a", name="bash")],
        [("a", "bash", A), ("a", "bash", B)],
    ),
    "name null": ([{"index": 0, "id": "a", "function": {"name": None, "arguments": A}}], [("a", "", A)]),
    "arguments as an object": (
        [piece(index=0, id="a", name="bash") | {"function": {"name": "bash", "arguments": {"n": 1}}}],
        [("a", "bash", '{"n": 1}')],
    ),
    "arguments null": ([{"index": 0, "id": "a", "function": {"name": "bash", "arguments": None}}], [("a", "bash", "")]),
    "half characters": (
        [piece('{"x": "\ud83d', index=0, id="a", name="bash"), piece('\ude00"}', index=0)],
        [("a", "bash", '{"x": "😀"}')],
    ),
    "a piece that repeats the beginning": (
        [piece(text, index=0, id="a", name="bash") for text in ('{"', '{"', ": null}")],
        [("a", "bash", '{"{": null}')],
    ),
    "nonsense beside": ([{}, piece(A, index=0, id="a", name="bash"), {"index": 0, "function": 3}], TWO[:1]),
}


@rows("shape", SHAPES)
def test_calls_are_assembled_from_any_shape_of_stream(shape: str) -> None:
    pieces, expected = SHAPES[shape]

    assert calls_of(pieces) == expected


def test_the_legacy_function_call_is_read() -> None:
    chunks = [delta(function_call=piece("", name="bash")["function"]), delta(function_call={"arguments": A})]

    answer = assemble([*chunks, delta("function_call")])

    assert answer.message.calls == (RequestedCall("", "bash", A),)
    assert answer.stop_reason == "tool_calls"


@rows(
    ("said", "text"),
    [
        ({"content": None}, ""),
        ({"content": ""}, ""),
        ({"content": "x"}, "x"),
        ({"content": [{"type": "text", "text": "x"}, {"type": "image"}]}, "x"),
        ({"refusal": "I can't."}, "I can't."),
        ({"content": 7}, ""),
        ({}, ""),
    ],
)
def test_text_is_assembled_from_any_shape_of_stream(said: dict[str, Any], text: str) -> None:
    assert assemble([delta("stop", **said)]).message == AssistantMessage(text)


@rows(
    "said",
    [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"reasoning_content": "hm", "reasoning": "hm"}],
)
def test_reasoning_is_assembled_from_any_shape_of_stream(said: dict[str, Any]) -> None:
    assembly = Assembly()

    assert assembly.feed(delta("stop", **said)) == (Delta("hm", "reasoning"),)
    assert assembly.answer().message == AssistantMessage(reasoning="hm")


USAGE = {"prompt_tokens": 5, "completion_tokens": 3}


@rows(
    "chunks",
    [
        [delta("stop", content="x"), {"choices": [], "usage": USAGE}],
        [delta("stop", content="x"), {"usage": USAGE}],
        [delta("stop", content="x"), {"choices": None, "usage": USAGE}],
        [delta(content="x"), {**delta("stop"), "usage": USAGE}],
        [{**delta(content="x"), "usage": {"prompt_tokens": 5}}, {**delta("stop"), "usage": USAGE}],
        [{**delta("stop", content="x"), "usage": USAGE}, {"choices": [], "usage": None}],
    ],
)
def test_usage_is_read_from_chunks_with_and_without_choices(chunks: list[object]) -> None:
    assert assemble(chunks) == Answer(AssistantMessage("x"), "stop", Usage(5, 3))


@rows("usage", [{"prompt_tokens": -1, "completion_tokens": "many"}, [], "none", None, {}])
def test_usage_without_counts_is_zero(usage: object) -> None:
    assert assemble([{**delta("stop", content="x"), "usage": usage}]).usage == Usage()


@rows(
    ("finish", "with_call", "without"),
    [
        ("stop", "tool_calls", "stop"),
        ("tool_calls", "tool_calls", "stop"),
        ("function_call", "tool_calls", "stop"),
        ("eos", "tool_calls", "stop"),
        ("length", "length", "length"),
        ("max_tokens", "length", "length"),
        ("content_filter", "content_filter", "content_filter"),
    ],
)
def test_calls_are_calls_whatever_the_finish_reason(finish: str, with_call: str, without: str) -> None:
    call = piece(A, index=0, id="a", name="bash")

    assert assemble([delta(finish, content="x")]).stop_reason == without
    answer = assemble([delta(tool_calls=[call]), delta(finish)])
    assert answer.stop_reason == with_call
    assert len(answer.message.calls) == 1


@rows("chunk", [{"error": {"message": "overloaded"}}, {"error": "overloaded"}, 7, None, "x", []])
def test_a_chunk_that_is_an_error_or_no_object_breaks_the_stream(chunk: object) -> None:
    with pytest.raises(ModelError) as caught:
        assemble([delta(content="x"), chunk, delta("stop")])

    assert caught.value.retryable


def test_a_whole_message_counts_unless_it_sums_up_what_streamed() -> None:
    message = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}

    assert assemble([message]).message.text == "x"
    assert assemble([delta(content="x"), message]).message.text == "x"


def test_an_endless_answer_is_an_error() -> None:
    with pytest.raises(ModelError, match="longer than 4,000,000 bytes") as caught:
        assemble(delta(content="x" * 100_000) for _ in range(LONGEST_ANSWER // 100_000 + 1))

    assert not caught.value.retryable
    assert caught.value.reason == "answer_too_long"


@rows("order", ["together", "legacy first", "legacy last"])
def test_a_call_that_is_said_in_the_legacy_form_too_is_one_call(order: str) -> None:
    legacy: Any = {"function_call": {"name": "bash", "arguments": A}}
    said: Any = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": A}}]}
    chunks = {
        "together": [delta(**said, **legacy)],
        "legacy first": [delta(**legacy), delta(**said)],
        "legacy last": [delta(**said), delta(**legacy)],
    }

    answer = assemble([*chunks[order], delta("tool_calls")])

    assert answer.message.calls == (RequestedCall("a", "bash", A),)


# However a stream is split and interleaved, the same calls come out.


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


@pytest.mark.slow
@given(calls=CALLS, says=SAYS, random=st.randoms(use_true_random=False))
def test_law_any_splitting_and_interleaving_assembles_to_the_same_calls(calls: Any, says: Any, random: Any) -> None:
    first, later, interleaved = says
    streams = [_stream(number, name, given, first, later, random) for number, (name, given) in enumerate(calls)]

    pieces = interleave(streams, random) if interleaved else [piece for stream in streams for piece in stream]

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
