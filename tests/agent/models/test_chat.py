"""The wire of chat completions: every shape in which servers stream an answer, and the request that goes out."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.chat import LONGEST_ANSWER, Assembly, render_messages
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.tools.schemas import ToolSchema
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    RequestedCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from tests.agent.models.shapes import (
    CALLS,
    TWO,
    A,
    B,
    Call,
    Event,
    Shape,
    assert_carried_out,
    assert_read,
    call,
    call_piece,
    delta,
    interleave,
)
from tests.tables import rows

pytestmark = pytest.mark.anyio

Piece = tuple[int | str | None, str | None, str | None, str | None] | Event
"""A piece of a call: index, id, name and arguments, None for what is not there; or the piece itself."""


def chunk(piece: Piece) -> Event:
    if isinstance(piece, dict):
        return delta(tool_calls=[piece])
    facts = {key: value for key, value in zip(("index", "id", "name"), piece, strict=False) if value is not None}
    return call(piece[3], **facts)


def of(pieces: Iterable[Piece], calls: Sequence[Call], finish: str = "tool_calls", **more: Any) -> Shape:
    """A shape of pieces, each in a chunk of its own, and a finish reason."""
    return Shape((*map(chunk, pieces), delta(finish)), calls, **more)


HALF = (0, "a", "note", A[:6])
FIRST, SECOND = (0, "a", "note", A), (1, "b", "read", B)

CALLS_IN_PIECES: dict[str, tuple[list[Piece], Sequence[Call]]] = {
    "indices that do not begin in order": ([(1, "b", "read", B), (0, "a", "note", A)], TWO),
    "index as text": ([("0", "a", "note", A[:4]), ("0", None, None, A[4:])], TWO[:1]),
    "index late": ([(None, "a", "note", A[:5]), (0, "a", None, A[5:])], TWO[:1]),
    "same index for two calls, interleaved by id": (
        [(0, "a", "note", A[:5]), (0, "b", "read", B[:3]), (0, "a", None, A[5:]), (0, "b", None, B[3:])], TWO,
    ),
    "same index for two calls, no id": (
        [(0, None, "note", A), (0, None, "read", B)], [("", "note", A), ("", "read", B)],
    ),
    "same index for two calls, no id, no arguments": (
        [(0, None, "note", ""), (0, None, "read", B)], [("", "note", ""), ("", "read", B)],
    ),
    "same index and name, no id": ([(0, None, "note", A)] * 2, [("", "note", A)] * 2),
    "name repeated, no index, no id": (
        [(None, None, "note", A[:5]), (None, None, "note", A[5:]), (None, None, "read", B)],
        [("", "note", A), ("", "read", B)],
    ),
    "the whole call once more at the end": ([(0, "a", "note", A)] * 2, TWO[:1]),
    "empty pieces after the whole call": (
        [(0, "a", "note", A), (0, "a", "note", ""), (0, None, None, ""), (0, None, None, None)], TWO[:1],
    ),
    "late id, no index": ([(None, None, "note", A[:5]), (None, "a", None, A[5:]), (None, "b", "read", B)], TWO),
    "late name": ([(0, "a", None, ""), (0, None, "note", A)], TWO[:1]),
    "name in pieces": ([(0, "a", "no", ""), (0, None, "te", ""), (0, None, None, A)], TWO[:1]),
    "name that grows": ([(0, "a", "no", ""), (0, "a", "note", A)], TWO[:1]),
    "braces in a text, the name in every piece": (
        [(0, "a", "note", text) for text in ('{"text": "}', "\\", '"}', "{}", '"', "}", " \n")],
        [("a", "note", '{"text": "}\\"}{}"} \n')],
    ),
    "what only looks like an object": ([(0, "a", "note", "{]}"), (0, "a", "note", "}")], [("a", "note", "{]}}")]),
    "an index late, and last": (
        [(0, "a", "note", A[:5]), (None, "b", "read", B[:3]), (1, None, None, B[3:]), (None, "a", None, A[5:])], TWO,
    ),
    "no id, no index, same name": ([(None, None, "note", A)] * 2, [("", "note", A)] * 2),
    "duplicate id, interleaved": (
        [(0, "a", "note", A[:5]), (1, "a", "read", B[:3]), (0, "a", None, A[5:]), (1, "a", None, B[3:])],
        [("a", "note", A), ("a", "read", B)],
    ),
    "duplicate id, no index": (
        [(None, "a", "note", A), (None, "a", "note", B)], [("a", "note", A), ("a", "note", B)],
    ),
    "half characters": (
        [(0, "a", "note", '{"x": "\ud83d'), (0, None, None, '\ude00"}')], [("a", "note", '{"x": "😀"}')],
    ),
    "a piece that repeats the beginning": (
        [(0, "a", "note", text) for text in ('{"', '{"', ": null}")], [("a", "note", '{"{": null}')],
    ),
    "null id": ([{"index": 0, "id": None, "function": {"name": "note", "arguments": A}}], [("", "note", A)]),
    "name null": ([{"index": 0, "id": "a", "function": {"name": None, "arguments": A}}], [("a", "", A)]),
    "arguments as an object": (
        [{"index": 0, "id": "a", "function": {"name": "note", "arguments": {"n": 1}}}], [("a", "note", '{"n": 1}')],
    ),
    "arguments null": ([{"index": 0, "id": "a", "function": {"name": "note", "arguments": None}}], [("a", "note", "")]),
    "nonsense beside": ([{}, (0, "a", "note", A), {"index": 0, "function": 3}], TWO[:1]),
    "a duplicate id": ([FIRST, (1, "a", "read", B)], [("a", "note", A), ("a", "read", B)]),
    "no name": ([(0, "a", "", A)], [("a", "", A)]),
    "unterminated JSON": ([HALF, SECOND], [("a", "note", A[:6]), TWO[1]]),
    "JSON that is none": ([(0, "a", "note", "{text: a}")], [("a", "note", "{text: a}")]),
    "doubly encoded JSON": ([(0, "a", "note", '"{}"')], [("a", "note", '"{}"')]),
    "whole, and a tail": ([(0, "a", "note", A + "</tool_call>")], [("a", "note", A + "</tool_call>")]),
    "no arguments": ([(0, "a", "ping", "")], [("a", "ping", "")]),
    "null for arguments": ([(0, "a", "ping", "null")], [("a", "ping", "null")]),
    "an unknown tool": ([(0, "a", "nota", A)], [("a", "nota", A)]),
    "an empty object first": ([(0, "a", "note", "{}"), (0, None, None, A)], TWO[:1]),
    "an empty object first, then the call again": ([(0, "a", "note", "{}"), FIRST], TWO[:1]),
    "an empty object first, then the call again, no id": (
        [(0, None, "ping", "{}"), (0, None, "ping", '{"at": "a"}')], [("", "ping", '{"at": "a"}')],
    ),
    "an empty object first, no index": ([(None, "a", "note", "{}"), (None, "a", "note", A)], TWO[:1]),
    "an empty object first, arguments in pieces": (
        [(0, "a", "note", "{}"), (0, None, None, A[:6]), (0, None, None, A[6:])], TWO[:1],
    ),
    "an empty object first, in each of two calls": (
        [(0, "a", "note", "{}"), (1, "b", "read", "{}"), (0, None, None, A), (1, None, None, B)], TWO,
    ),
    "an empty object first, and the rest breaks off": (
        [(0, "a", "note", "{}"), (0, None, None, A[:6])], [("a", "note", A[:6])],
    ),
    "an empty object alone": ([(0, "a", "ping", "{}")], [("a", "ping", "{}")]),
    "two calls without arguments": (
        [(0, "a", "ping", "{}"), (1, "b", "ping", "{}")], [("a", "ping", "{}"), ("b", "ping", "{}")],
    ),
    "the same arguments twice": ([FIRST, (0, None, None, A)], TWO[:1]),
    "another id in each piece": ([(0, "a", "note", ""), (0, "b", None, A[:6]), (0, "c", None, A[6:])], TWO[:1]),
    "another id in each piece, no index": (
        [(None, "a", "note", ""), (None, "b", None, A[:6]), (None, "c", None, A[6:])], TWO[:1],
    ),
    "other arguments after the first": ([FIRST, (0, None, None, B)], [("a", "note", A + B)]),
}  # fmt: skip

CUT_OFF = {
    "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "max_output_tokens": "length",
    "maxTokens": "length", "FINISH_REASON_MAX_TOKENS": "length", "model_context_window_exceeded": "length",
    "content_filter": "content_filter", "contentFilter": "content_filter", "content-filter": "content_filter",
    "SAFETY": "content_filter", "RECITATION": "content_filter", "refusal": "content_filter",
    "insufficient_system_resource": "incomplete", "abort": "incomplete", "cancelled": "incomplete",
    "time_limit": "incomplete", "pause_turn": "incomplete", "unheard of": "incomplete",
}  # fmt: skip
WHOLE = (
    "stop", "STOP", "tool_calls", "tool_use", "toolUse", "function_call", "eos", "end_turn", "stop_sequence",
    "COMPLETE", "FINISH_REASON_STOP",
)  # fmt: skip

ERRORS: list[Event] = [
    {"error": {"message": "overloaded"}}, {"error": "overloaded"}, {"object": "error", "message": "overloaded"},
    {"message": "overloaded", "code": 503}, {"detail": "overloaded"},
    {"type": "error", "message": "overloaded"},
    {"code": "503", "msg": "overloaded"}, {"error": [{"message": "overloaded"}]},
    {"choices": [], "error": {"message": "overloaded"}}, {"errors": [{"message": "overloaded"}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": "overloaded"}}]},
]  # fmt: skip

SHAPES: dict[str, Shape] = {
    **{name: of(*row) for name, row in CALLS_IN_PIECES.items()},
    **{f"calls, {said}": of([FIRST], TWO[:1], said) for said in WHOLE},
    **{f"calls, {said}": of([FIRST, (*HALF[:3], "")], TWO[:1], said, stop=stop) for said, stop in CUT_OFF.items()},
    **{f"no arguments, {said}": of([(0, "a", "ping", "")], [("a", "ping", "")], said, stop=stop)
       for said, stop in CUT_OFF.items()},
    "cut off, and then a stop": Shape((chunk(FIRST), delta("length"), delta("stop")), TWO[:1], "length"),
    "a stop, and then cut off": Shape((chunk(FIRST), delta("stop"), delta("length")), TWO[:1], "length"),
    "another choice": Shape(
        ({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]},
         chunk(FIRST), delta("stop")),
        TWO[:1],
    ),
    "a reason in every chunk": Shape(
        ({**chunk(HALF), "choices": [{**chunk(HALF)["choices"][0], "finish_reason": ""}]},
         chunk((0, None, None, A[6:])), delta("tool_calls")), TWO[:1],
    ),
    "the legacy form": Shape(
        (delta(function_call={"name": "note", "arguments": ""}), delta(function_call={"arguments": A}),
         delta("function_call")), [("", "note", A)],
    ),
    **{
        f"also in the legacy form, {order}": Shape((*chunks, delta("tool_calls")), TWO[:1])
        for order, chunks in {
            "together": [delta(**chunk(FIRST)["choices"][0]["delta"], function_call={"name": "note", "arguments": A})],
            "first": [delta(function_call={"name": "note", "arguments": A}), chunk(FIRST)],
            "last": [chunk(FIRST), delta(function_call={"name": "note", "arguments": A})],
        }.items()
    },
    "entries of one list": Shape(
        (delta(tool_calls=[call_piece("{}", id="a", name="ping"), call_piece("{}", id="a", name="ping")]),
         delta("tool_calls")), [("a", "ping", "{}")] * 2,
    ),
    "no streaming": Shape(
        ({"choices": [{"message": {"content": "x", "tool_calls": [call_piece(A, id="a", name="note")]},
                       "finish_reason": "stop"}]},), TWO[:1], text="x",
    ),
    "the message once more": Shape(
        (chunk(FIRST), {"choices": [{"message": {"content": None, "tool_calls": [call_piece(A, id="a", name="note")]},
                                     "finish_reason": "stop"}]}), TWO[:1],
    ),
    "no end marker": of([FIRST], TWO[:1], done=False),
    "no finish reason": Shape((chunk(FIRST),), broken=True),
    "no finish reason, no end marker": Shape((chunk(FIRST),), broken=True, done=False),
    "finish reason error": of([FIRST], (), "error", broken=True),
    "finish reason network_error": of([FIRST], (), "network_error", broken=True),
    "a call that the server could not read": of([], (), "MALFORMED_FUNCTION_CALL", broken=True),
    **{
        f"an error in the stream, {number}": Shape((chunk(FIRST), error, delta("tool_calls")), broken=True)
        for number, error in enumerate(ERRORS)
    },
    "nothing at all": Shape((), broken=True),
}  # fmt: skip
"""What servers sent, and what it means."""


@rows(("name", "shape"), SHAPES.items())
async def test_calls_are_read_from_any_shape_of_stream(name: str, shape: Shape) -> None:
    await assert_read("chat", shape)


@pytest.mark.slow
@rows(("name", "shape"), SHAPES.items())
async def test_what_was_cut_off_never_runs_and_every_call_has_one_answer(
    name: str, shape: Shape, tmp_path: Path
) -> None:
    await assert_carried_out("chat", shape, tmp_path)


def assemble(chunks: Iterable[object]) -> Answer:
    assembly = Assembly("m")
    for chunk in chunks:
        assembly.feed(chunk)
    return assembly.answer()


def calls_of(pieces: Sequence[Event], finish: str = "tool_calls") -> list[Call]:
    """The calls that pieces make, when each comes in a chunk of its own."""
    answer = assemble([*(delta(tool_calls=[piece]) for piece in pieces), delta(finish)])
    return [(call.id, call.name, call.arguments) for call in answer.message.calls]


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


NO_USAGES: list[object] = [[], "none", None, {}]
USAGES: list[tuple[object, Usage]] = [
    ({"prompt_tokens": 5, "completion_tokens": 3}, Usage(5, 3)),
    ({"prompt_tokens": 5.0, "completion_tokens": 3.0}, Usage(5, 3)),
    ({"input_tokens": 5, "output_tokens": 3}, Usage(5, 3)),
    ({"prompt_tokens": -1, "completion_tokens": "many"}, Usage()),
    ({"prompt_tokens": float("inf"), "completion_tokens": float("nan")}, Usage()),
    *((nothing, Usage()) for nothing in NO_USAGES),
]


@rows(("told", "usage"), USAGES)
def test_usage_is_counted_in_whole_tokens(told: object, usage: Usage) -> None:
    assert assemble([{**delta("stop", content="x"), "usage": told}]).usage == usage


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


@rows("chunk", [7, None, "x", []])
def test_a_chunk_that_is_no_object_breaks_the_stream(chunk: object) -> None:
    with pytest.raises(ModelError) as caught:
        assemble([delta(content="x"), chunk, delta("stop")])

    assert caught.value.retryable


def test_an_endless_answer_is_an_error() -> None:
    with pytest.raises(ModelError, match="longer than 4,000,000 bytes") as caught:
        assemble(delta(content="x" * 100_000) for _ in range(LONGEST_ANSWER // 100_000 + 1))

    assert not caught.value.retryable
    assert caught.value.reason == "answer_too_long"


# Fields that are not of the format come back to the server that sent them, and to no other


SIGNED: Event = {"extra_content": {"google": {"thought_signature": "abc"}}}
THOUGHT = {"type": "reasoning.text", "index": 0, "format": "x-v1"}
KEPT: dict[str, tuple[list[Event], Event, list[Event]]] = {
    "reasoning_content": (
        [{"reasoning_content": "I "}, {"reasoning_content": "look."}], {"reasoning_content": "I look."}, [],
    ),
    "reasoning": ([{"reasoning": "I look."}], {"reasoning": "I look."}, []),
    "details in pieces": (
        [{"reasoning_details": [{**THOUGHT, "text": "I "}]}, {"reasoning_details": [{**THOUGHT, "text": "look."}]},
         {"reasoning_details": [{**THOUGHT, "signature": "abc"}]},
         {"reasoning_details": [{"type": "reasoning.encrypted", "data": "secret", "id": "r1"}]}],
        {"reasoning_details": [{**THOUGHT, "text": "I look.", "signature": "abc"},
                               {"type": "reasoning.encrypted", "data": "secret", "id": "r1"}]}, [],
    ),
    "beside the message": ([{"content": "x", **SIGNED}], SIGNED, []),
    "beside a call": (
        [{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ping"}, **SIGNED}]}], {}, [SIGNED],
    ),
    "beside the second of two calls": (
        [{"tool_calls": [{"index": n, "id": f"{n}", "function": {"name": "ping"}, **({} if n == 0 else SIGNED)}]}
         for n in (0, 1)], {}, [{}, SIGNED],
    ),
    "repeated in each piece": (
        [{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ping", "arguments": part}, **SIGNED}]}
         for part in ("{", "}")], {}, [SIGNED],
    ),
    "within the function": (
        [{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ping", "thought_signature": "abc"}}]}],
        {}, [{"function": {"thought_signature": "abc", "name": "ping", "arguments": "{}"}}],
    ),
    "nothing": ([{"content": "x", "audio": None, "annotations": [], "reasoning_content": ""}], {}, []),
}  # fmt: skip


@rows(("name", "said", "beside", "calls"), [(name, *row) for name, row in KEPT.items()])
def test_fields_that_are_not_of_the_format_come_back_to_the_same_model_alone(
    name: str, said: list[Event], beside: Event, calls: list[Event]
) -> None:
    message = assemble([*(delta(**part) for part in said), delta("stop")]).message

    [sent], [elsewhere] = rendered(message), rendered(message, source="http://other#m")

    plain = {"role": "assistant", "content": sent["content"]}
    asked = [
        {"id": call.id, "type": "function", "function": {"name": "ping", "arguments": "{}"}} for call in message.calls
    ]
    extended = [{**call, **more} for call, more in zip(asked, calls or [{}] * len(asked), strict=True)]
    assert elsewhere == plain | ({"tool_calls": asked} if asked else {})
    assert sent == plain | beside | ({"tool_calls": extended} if asked else {})


@rows(
    "said",
    [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"reasoning_content": "hm", "reasoning": "hm"}],
)
def test_reasoning_is_shown_whatever_its_field_is_called(said: Event) -> None:
    assembly = Assembly()

    assert assembly.feed(delta("stop", **said)) == (Delta("hm", "reasoning"),)
    assert (assembly.answer().message.text, assembly.answer().message.reasoning) == ("", "hm")


# However long an answer is, assembling it takes linear time.


def braces(number: int) -> Sequence[Event]:
    return [
        call_piece('{"a": "', index=0, id="a", name="bash"),
        *[call_piece("}", index=0, id="a", name="bash")] * number,
    ]


def closed(number: int) -> Sequence[Event]:
    return [
        call_piece('{"a": "b"}', index=0, id="a", name="bash"),
        *[call_piece(" ", index=0, id="a", name="bash")] * number,
    ]


def interleaved(number: int) -> Sequence[Event]:
    return [call_piece("x", index=place, id=f"c{place}", name="bash") for _ in range(4) for place in range(number)]


def late(number: int) -> Sequence[Event]:
    begun = [call_piece("x", index=place, name="bash") for place in range(number)]
    return [*begun, *(call_piece("x", index=place, id=f"c{place}") for _ in range(3) for place in range(number))]


@pytest.mark.slow
@rows("hostile", [braces, closed, interleaved, late])
def test_the_work_grows_with_the_pieces_and_not_with_their_square(hostile: Any) -> None:
    assert work(hostile(400)) < 2.2 * work(hostile(200))


def work(pieces: Sequence[Event]) -> int:
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


def _stream(number: int, name: str, given: Any, first: set[str], later: set[str], random: Any) -> list[Event]:
    """One call, cut at random places; at least two pieces, so that what is said later is said."""
    text = json.dumps(given, ensure_ascii=False)
    cuts = sorted(random.sample(range(1, len(text)), random.randint(1, min(4, len(text) - 1))))
    texts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    facts = {"index": number, "id": f"id{number}", "name": name}
    return [
        call_piece(text, **{key: facts[key] for key in (later if position else first)})
        for position, text in enumerate(texts)
    ]


# Requests


BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})


def rendered(*messages: Message, system: str = "", reasoning_field: str = "", source: str = "m") -> list[Event]:
    return render_messages(ModelRequest(system, messages, (BASH,)), reasoning_field, source)


def rendered_call(name: str = "bash", arguments: str = "{}") -> object:
    [message] = rendered(AssistantMessage(calls=(RequestedCall("a", name, arguments),)))
    assert message["content"] is None
    [call] = message["tool_calls"]
    return call


def test_a_conversation_is_rendered_for_chat_completions() -> None:
    call = RequestedCall("a", "bash", '{"command": "ls"}')

    messages = rendered(
        UserMessage("go"), AssistantMessage("I look.", (call,), "hm"), ToolMessage("a", ToolResult("x")),
        AssistantMessage("Done."),
        system="Be brief.",
    )  # fmt: skip

    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip


@rows(
    ("arguments", "sent"),
    [
        *((text, text) for text in ("{}", ' { "a" : 1 } ', '{"a": 1, "a": 2}', '{"a": "é"}')),
        *((text, "{}") for text in ("", "null", "{", "[1]", '"{}"', '{"a": NaN}', "[" * 100_000, "ls")),
    ],
)
def test_argument_text_goes_back_as_the_model_wrote_it_or_as_an_empty_object(arguments: str, sent: str) -> None:
    assert rendered_call(arguments=arguments) == {
        "id": "a", "type": "function", "function": {"name": "bash", "arguments": sent},
    }  # fmt: skip


@rows(
    ("name", "sent"),
    [("", "unnamed"), (" ", "unnamed"), ("multi_tool.parallel", "multi_tool_parallel"), ("my.bash", "my.bash"),
     ("x" * 99, "x" * 64)],
)  # fmt: skip
def test_names_that_a_provider_refuses_are_replaced_unless_a_tool_has_them(name: str, sent: str) -> None:
    assert rendered_call(name) == {"id": "a", "type": "function", "function": {"name": sent, "arguments": "{}"}}


def test_text_that_cannot_be_encoded_is_mended() -> None:
    messages = rendered(
        UserMessage("\ud800x"),
        ToolMessage("a", ToolResult("\udc80")),
        AssistantMessage("\udfff"),
        system="\ud83d\ude00",
    )

    assert [message["content"] for message in messages] == ["😀", "\ufffdx", "\ufffd", "\ufffd"]


PNG = Image("image/png", b"\x89PNG")
PART: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def test_images_of_a_person_are_parts_of_the_message() -> None:
    assert rendered(UserMessage("look", (PNG, PNG)), UserMessage("", (PNG,))) == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, PART, PART]},
        {"role": "user", "content": [PART]},
    ]


def test_images_of_tools_come_after_the_last_result_of_the_batch() -> None:
    """A message in between would part a call from its answer, and providers refuse that."""
    calls = tuple(RequestedCall(id, "my.bash") for id in ("a", "b"))

    messages = rendered(
        AssistantMessage(calls=calls),
        ToolMessage("a", ToolResult("x", images=(PNG,))),
        ToolMessage("b", ToolResult("y")),
        UserMessage("go on"),
    )

    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "user"]
    assert messages[1]["content"] == "x\n[image/png, 4 bytes: shown in the next message]"
    assert messages[3]["content"] == [{"type": "text", "text": "Shown by the call a:"}, PART]
    assert rendered(ToolMessage("a", ToolResult("x", images=(PNG,))))[-1]["role"] == "user"


def test_reasoning_stays_unless_a_field_is_named_for_it() -> None:
    message = AssistantMessage("hi", reasoning="hm")

    assert rendered(message) == [{"role": "assistant", "content": "hi"}]
    assert rendered(message, reasoning_field="reasoning_content") == [
        {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    ]
    assert rendered(AssistantMessage("hi"), reasoning_field="reasoning") == rendered(AssistantMessage("hi"))
