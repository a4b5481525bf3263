"""Every shape in which servers stream an answer assembles to the same answer, or to none."""

import json
import sys
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

Given = tuple[int | str | None, str | None, str | None, str | None] | Piece
"""A piece of a call: index, id, name and arguments, None for what is not there; or the piece itself."""

SHAPES: dict[str, tuple[list[Given], list[tuple[str, str, str]]]] = {
    "indices that do not begin in order": ([(1, "b", "read", B), (0, "a", "bash", A)], TWO),
    "index as text": ([("0", "a", "bash", A[:4]), ("0", None, None, A[4:])], TWO[:1]),
    "index late": ([(None, "a", "bash", A[:5]), (0, "a", None, A[5:])], TWO[:1]),
    "same index for two calls, interleaved by id": (
        [(0, "a", "bash", A[:5]), (0, "b", "read", B[:3]), (0, "a", None, A[5:]), (0, "b", None, B[3:])], TWO,
    ),
    "same index for two calls, no id": (
        [(0, None, "bash", A), (0, None, "read", B)], [("", "bash", A), ("", "read", B)],
    ),
    "same index for two calls, no id, no arguments": (
        [(0, None, "bash", ""), (0, None, "read", B)], [("", "bash", ""), ("", "read", B)],
    ),
    "same index and name, no id": ([(0, None, "bash", A)] * 2, [("", "bash", A)] * 2),
    "name repeated, no index, no id": (
        [(None, None, "bash", A[:5]), (None, None, "bash", A[5:]), (None, None, "read", B)],
        [("", "bash", A), ("", "read", B)],
    ),
    "the whole call once more at the end": ([(0, "a", "bash", A)] * 2, TWO[:1]),
    "empty pieces after the whole call": (
        [(0, "a", "bash", A), (0, "a", "bash", ""), (0, None, None, ""), (0, None, None, None)], TWO[:1],
    ),
    "late id, no index": ([(None, None, "bash", A[:5]), (None, "a", None, A[5:]), (None, "b", "read", B)], TWO),
    "late name": ([(0, "a", None, ""), (0, None, "bash", A)], TWO[:1]),
    "name in pieces": ([(0, "a", "ba", ""), (0, None, "sh", ""), (0, None, None, A)], TWO[:1]),
    "name that grows": ([(0, "a", "ba", ""), (0, "a", "bash", A)], TWO[:1]),
    "braces in a text, the name in every piece": (
        [(0, "a", "bash", text) for text in ('{"a": "}', "\\", '"}', "{}", '"', "}", " \n")],
        [("a", "bash", '{"a": "}\\"}{}"} \n')],
    ),
    "what only looks like an object": ([(0, "a", "bash", "{]}"), (0, "a", "bash", "}")], [("a", "bash", "{]}}")]),
    "an index late, and last": (
        [(0, "a", "bash", A[:5]), (None, "b", "read", B[:3]), (1, None, None, B[3:]), (None, "a", None, A[5:])], TWO,
    ),
    "no id, no index, same name": ([(None, None, "bash", A)] * 2, [("", "bash", A)] * 2),
    "duplicate id, interleaved": (
        [(0, "a", "bash", A[:5]), (1, "a", "read", B[:3]), (0, "a", None, A[5:]), (1, "a", None, B[3:])],
        [("a", "bash", A), ("a", "read", B)],
    ),
    "duplicate id, no index": (
        [(None, "a", "bash", A), (None, "a", "bash", B)], [("a", "bash", A), ("a", "bash", B)],
    ),
    "half characters": (
        [(0, "a", "bash", '{"x": "\ud83d'), (0, None, None, '\ude00"}')], [("a", "bash", '{"x": "😀"}')],
    ),
    "a piece that repeats the beginning": (
        [(0, "a", "bash", text) for text in ('{"', '{"', ": null}")], [("a", "bash", '{"{": null}')],
    ),
    "null id": ([{"index": 0, "id": None, "function": {"name": "bash", "arguments": A}}], [("", "bash", A)]),
    "name null": ([{"index": 0, "id": "a", "function": {"name": None, "arguments": A}}], [("a", "", A)]),
    "arguments as an object": (
        [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": {"n": 1}}}], [("a", "bash", '{"n": 1}')],
    ),
    "arguments null": ([{"index": 0, "id": "a", "function": {"name": "bash", "arguments": None}}], [("a", "bash", "")]),
    "nonsense beside": ([{}, (0, "a", "bash", A), {"index": 0, "function": 3}], TWO[:1]),
}  # fmt: skip


def as_piece(given: Given) -> Piece:
    if isinstance(given, dict):
        return given
    said = {key: value for key, value in zip(("index", "id", "name"), given, strict=False) if value is not None}
    return piece(given[3], **said)


@rows("shape", SHAPES)
def test_calls_are_assembled_from_any_shape_of_stream(shape: str) -> None:
    pieces, expected = SHAPES[shape]

    assert calls_of([*map(as_piece, pieces)]) == expected


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


def test_entries_of_one_list_are_calls_of_their_own() -> None:
    two = [piece("{}", id="a", name="bash"), piece("{}", id="a", name="bash")]

    answer = assemble([delta("tool_calls", tool_calls=two)])

    assert [call.name for call in answer.message.calls] == ["bash", "bash"]


@rows("finishes", [("length", "stop"), ("stop", "length"), ("length", None)])
def test_a_finish_reason_that_says_cut_off_wins(finishes: Sequence[str | None]) -> None:
    assert assemble([delta(finish, content="x") for finish in finishes]).stop_reason == "length"


def test_choices_with_another_index_are_ignored() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}

    assert assemble([delta(content="x"), other, delta("stop")]).message.text == "x"


def test_halves_of_a_character_in_two_chunks_are_joined() -> None:
    assert assemble([delta(content="\ud83d"), delta("stop", content="\ude00\ud83d")]).message.text == "😀\ufffd"


def test_listeners_are_shown_no_half_of_a_character() -> None:
    first, second = {"arguments": '{"x": "\ud83d'}, {"arguments": '\ude00"}'}
    assembly, shown = Assembly(), list[Delta]()
    for half, part in (("a\ud83d", first), ("\ude00\ud83d", second), ("b", {})):
        call = {"index": 0, "id": "c", "function": {"name": "look", **part}}
        said: Any = {"content": half, "reasoning_content": half, "tool_calls": [call] if part else []}
        shown += assembly.feed(delta(**said))

    texts = {kind: "".join(each.text for each in shown if each.kind == kind) for kind in ("text", "reasoning")}
    assert texts == {"text": "a😀\ufffdb", "reasoning": "a😀\ufffdb"}
    assert "".join(each.text for each in shown if each.kind == "arguments") == '{"x": "😀"}'


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


# However long an answer is, assembling it takes linear time.


def braces(number: int) -> Sequence[Piece]:
    return [piece('{"a": "', index=0, id="a", name="bash"), *[piece("}", index=0, id="a", name="bash")] * number]


def closed(number: int) -> Sequence[Piece]:
    return [piece('{"a": "b"}', index=0, id="a", name="bash"), *[piece(" ", index=0, id="a", name="bash")] * number]


def interleaved(number: int) -> Sequence[Piece]:
    return [piece("x", index=place, id=f"c{place}", name="bash") for _ in range(4) for place in range(number)]


def late(number: int) -> Sequence[Piece]:
    begun = [piece("x", index=place, name="bash") for place in range(number)]
    return [*begun, *(piece("x", index=place, id=f"c{place}") for _ in range(3) for place in range(number))]


@pytest.mark.slow
@rows("hostile", [braces, closed, interleaved, late])
def test_the_work_grows_with_the_pieces_and_not_with_their_square(hostile: Any) -> None:
    assert work(hostile(400)) < 2.2 * work(hostile(200))


def work(pieces: Sequence[Piece]) -> int:
    """The calls that assembling takes, and the characters that are parsed or copied in them."""
    done = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal done
        done += event in ("call", "c_call")
        if event == "call" and frame.f_code is json.loads.__code__:
            done += len(frame.f_locals["s"])
        elif event == "c_call" and argument.__name__ == "getvalue":
            done += argument.__self__.tell()

    chunks = [delta(tool_calls=[piece]) for piece in pieces]
    assembly, before = Assembly(), sys.getprofile()
    sys.setprofile(see)
    try:
        for chunk in chunks:
            assembly.feed(chunk)
    finally:
        sys.setprofile(before)
    return done


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
