"""The wire of the responses API: every shape in which servers stream an answer, and the request that goes out."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.responses import ResponseAssembly, render_input, responses_body
from agent.tools.schemas import ToolSchema
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from tests.agent.models.shapes import (
    CALLS,
    A,
    B,
    Call,
    Event,
    Shape,
    added,
    arguments_done,
    assert_carried_out,
    assert_read,
    ended,
    interleave,
    piece,
    streamed,
    whole,
)
from tests.tables import rows

pytestmark = pytest.mark.anyio

ONE: dict[str, Any] = {"call_id": "a", "name": "note"}
OTHER: dict[str, Any] = {"call_id": "b", "name": "note"}
PING: dict[str, Any] = {"call_id": "a", "name": "ping"}
BOTH: list[Call] = [("a", "note", A), ("b", "note", B)]

ERRORS: list[Event] = [
    {"error": {"message": "overloaded"}}, {"object": "error", "message": "overloaded"},
    {"detail": "overloaded"}, {"message": "overloaded", "code": 503},
]  # fmt: skip
EMPTY: tuple[object, ...] = ("", "{}", "null", None, {})

SHAPES: dict[str, Shape] = {
    "index gaps": Shape((*streamed("x", 3, ONE, A), *streamed("y", 7, OTHER, B), ended()), BOTH),
    "the same index for two calls": Shape((*streamed("x", 0, ONE, A), *streamed("y", 0, OTHER, B), ended()), BOTH),
    "the same index, interleaved": Shape(
        (added("x", 0, **ONE), added("y", 0, **OTHER), piece(A, "x", 0), piece(B, "y", 0),
         whole("x", 0, **ONE, arguments=A), whole("y", 0, **OTHER, arguments=B), ended()), BOTH
    ),
    "announced in every chunk": Shape(
        (added("x", 0, **ONE), piece(A[:6], "x", 0), added("x", 0, **ONE), piece(A[6:], "x", 0),
         whole("x", 0, **ONE, arguments=A), whole("x", 0, **ONE, arguments=A), ended()), BOTH[:1]
    ),
    "a late id": Shape(
        (added("x", 0, name="note"), piece(A, "x", 0), whole("x", 0, **ONE, arguments=A), ended()), BOTH[:1]
    ),
    "no call id": Shape(
        (*streamed("x", 0, {"name": "note"}, A), *streamed("y", 1, {"name": "note"}, B), ended()),
        [("x", "note", A), ("y", "note", B)],
    ),
    "no id at all": Shape(
        (*streamed("", 0, {"name": "note"}, A), *streamed("", 1, {"name": "note"}, B), ended()),
        [("", "note", A), ("", "note", B)],
    ),
    "a duplicate call id": Shape(
        (*streamed("x", 0, ONE, A), *streamed("y", 1, {**OTHER, "call_id": "a"}, B), ended()),
        [("a", "note", A), ("a", "note", B)],
    ),
    "a duplicate id": Shape((*streamed("x", 0, ONE, A), *streamed("x", 1, OTHER, B), ended()), BOTH),
    "a duplicate id, interleaved": Shape(
        (added("x", 0, **ONE), added("x", 1, **OTHER), piece(A, "x", 0), piece(B, "x", 1),
         whole("x", 0, **ONE, arguments=A), whole("x", 1, **OTHER, arguments=B), ended()), BOTH
    ),
    "another id in every event, and no index": Shape(
        (added("x1", None, **ONE), piece(A, "x1"), added("y1", None, **OTHER), piece(B, "y1"),
         whole("x3", None, **ONE, arguments=A), whole("y3", None, **OTHER, arguments=B), ended()), BOTH
    ),
    "the same index, nothing announced": Shape(
        (whole("", 0, **ONE, arguments=A), whole("", 0, **OTHER, arguments=B), ended()), BOTH
    ),
    "pieces after the whole call": Shape(
        (whole("", 0, **ONE, arguments=A), piece(B, "", 0), ended()), broken=True
    ),
    "nothing announced": Shape(
        (piece(A, "x", 0), whole("x", 0, **ONE, arguments=A), whole("y", 1, **OTHER, arguments=B), ended()), BOTH
    ),
    "once more at the end, without arguments": Shape(
        (*streamed("x", 0, ONE, A), ended(output=[{"type": "function_call", "id": "x", **ONE}])), BOTH[:1]
    ),
    "usage": Shape((*streamed("x", 0, ONE, A), ended(usage={"input_tokens": 1, "output_tokens": 2})), BOTH[:1]),
    "no end marker": Shape((*streamed("x", 0, ONE, A), ended()), BOTH[:1], done=False),
    "cut by length": Shape(
        (*streamed("x", 0, ONE, A), added("y", 1, **OTHER), piece(B[:6], "y", 1),
         ended("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        [BOTH[0], ("b", "note", B[:6])], "length",
    ),
    "cut by the content filter": Shape(
        (added("x", 0, **ONE), piece(A[:6], "x", 0),
         ended("incomplete", incomplete_details={"reason": "content_filter"})),
        [("a", "note", A[:6])], "content_filter",
    ),
    "cut before the arguments": Shape(
        (added("x", 0, call_id="a", name="ping"), ended("incomplete", incomplete_details={})),
        [("a", "ping", "")], "length",
    ),
    "cut, and given as if whole": Shape(
        (added("x", 0, **ONE), whole("x", 0, **ONE, arguments=A[:6], status="incomplete"), ended("incomplete")),
        [("a", "note", A[:6])], "length",
    ),
    "a call that never got arguments": Shape((added("x", 0, call_id="a", name="ping"), ended()), broken=True),
    "no last event": Shape(streamed("x", 0, ONE, A), broken=True),
    "no last event, no end marker": Shape(streamed("x", 0, ONE, A), broken=True, done=False),
    "an error in the stream": Shape(
        (*streamed("x", 0, ONE, A), {"type": "error", "message": "overloaded"}), broken=True
    ),
    "a failed response": Shape(
        (*streamed("x", 0, ONE, A), ended("failed", error={"code": "server_error", "message": "oh"})), broken=True
    ),
    "a cancelled response": Shape((*streamed("x", 0, ONE, A), ended("cancelled")), broken=True),
    "nothing at all": Shape((), broken=True),
    "a call that is incomplete in a response that is not": Shape(
        (added("x", 0, **PING), whole("x", 0, **PING, arguments="", status="incomplete"), ended()),
        [("a", "ping", "")], "incomplete",
    ),
    **{
        f"cut for the reason {reason}": Shape(
            (*streamed("x", 0, ONE, A), ended("incomplete", incomplete_details={"reason": reason})), BOTH[:1], stop
        )
        for reason, stop in {"MAX_TOKENS": "length", "SAFETY": "content_filter", "abort": "incomplete",
                             "stop": "incomplete"}.items()
    },
    **{
        f"arguments that only stream, {how}, and {item!r} in the item": Shape(
            (added("x", 0, **ONE, arguments=""), *events, whole("x", 0, **ONE, arguments=item), ended()), BOTH[:1]
        )
        for item in EMPTY
        for how, events in {
            "in pieces": (piece(A[:6], "x", 0), piece(A[6:], "x", 0)),
            "in pieces and at their end": (piece(A[:6], "x", 0), piece(A[6:], "x", 0), arguments_done(A, "x", 0)),
            "at their end": (arguments_done(A, "x", 0),),
            "as an object": (arguments_done({"text": "a"}, "x", 0),),
            "after an empty object": (piece("{}", "x", 0), piece(A, "x", 0)),
        }.items()
    },
    "arguments only in the announcement": Shape(
        (added("x", 0, **ONE, arguments=A), whole("x", 0, **ONE, arguments=""), ended()), BOTH[:1]
    ),
    "arguments only at their end, nothing announced": Shape(
        (arguments_done(A, "x", 0), whole("x", 0, **ONE, arguments=""), ended()), BOTH[:1]
    ),
    "arguments only in the last event": Shape(
        (added("x", 0, **ONE), whole("x", 0, **ONE, arguments="{}"),
         ended(output=[{"type": "function_call", **ONE, "arguments": A}])), BOTH[:1],
    ),
    "arguments that only stream, never the item, and none in the last event": Shape(
        (added("x", 0, **ONE), piece(A, "x", 0), ended(output=[{"type": "function_call", **ONE, "arguments": "{}"}])),
        BOTH[:1],
    ),
    "arguments that only stream, for a call that the last event names otherwise and gives none": Shape(
        (added("x", 0, **ONE), piece(A, "x", 0), ended(output=[{"type": "function_call", **OTHER, "arguments": "{}"}])),
        broken=True,
    ),
    "a call that the last event names otherwise, with its arguments": Shape(
        (added("x", 0, **ONE), piece(A, "x", 0), ended(output=[{"type": "function_call", **OTHER, "arguments": B}])),
        BOTH[1:],
    ),
    "arguments of one of two calls only in the last event": Shape(
        (whole("x", 0, **PING, arguments="{}"), whole("y", 1, **OTHER, arguments=""),
         ended(output=[{"type": "function_call", **OTHER, "arguments": B}, {"type": "function_call", **PING}])),
        [("a", "ping", "{}"), BOTH[1]],
    ),
    "arguments of two calls only at their ends": Shape(
        (added("x", 0, **ONE), added("y", 1, **OTHER), arguments_done(B, "y", 1), arguments_done(A, "x", 0),
         whole("x", 0, **ONE, arguments=""), whole("y", 1, **OTHER, arguments="")  , ended()), BOTH
    ),
    "arguments that only stream, and break off": Shape(
        (added("x", 0, **ONE), piece(A[:6], "x", 0), whole("x", 0, **ONE, arguments=""), ended()),
        [("a", "note", A[:6])],
    ),
    "the item twice, without arguments": Shape(
        (added("x", 0, **ONE), piece(A, "x", 0), whole("x", 0, **ONE, arguments=""), whole("x", 0, **ONE, arguments=""),
         ended()), BOTH[:1],
    ),
    "no arguments at all": Shape(
        (added("x", 0, **PING), whole("x", 0, **PING, arguments=""), ended()), [("a", "ping", "")]
    ),
    "an end of arguments, and never the item": Shape(
        (added("x", 0, **ONE), arguments_done(A, "x", 0), ended()), broken=True
    ),
    **{
        f"an error without a type, {number}": Shape((*streamed("x", 0, ONE, A), error, ended()), broken=True)
        for number, error in enumerate(ERRORS)
    },
}  # fmt: skip
"""What servers sent, and what it means."""


@rows(("name", "shape"), SHAPES.items())
async def test_calls_are_read_from_any_shape_of_stream(name: str, shape: Shape) -> None:
    await assert_read("responses", shape)


@pytest.mark.slow
@rows(("name", "shape"), SHAPES.items())
async def test_what_was_cut_off_never_runs_and_every_call_has_one_answer(
    name: str, shape: Shape, tmp_path: Path
) -> None:
    await assert_carried_out("responses", shape, tmp_path)


THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "secret"}


def assemble(*events: object, seen: list[Delta] | None = None) -> Answer:
    assembly = ResponseAssembly("m")
    for event in events:
        delta = assembly.feed(event)
        if seen is not None:
            seen.extend(delta)
    return assembly.answer()


def done(item: Event, index: int | None = None) -> Event:
    return {"type": "response.output_item.done", "item": item, **({} if index is None else {"output_index": index})}


def said(text: str, id: str = "m") -> Event:
    return {"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]}


def saying(text: str, kind: str = "output_text", **place: object) -> Event:
    return {"type": f"response.{kind}.delta", "delta": text, **place}


def test_text_and_reasoning_stream_to_listeners() -> None:
    seen: list[Delta] = []

    answer = assemble(
        saying("hm", "reasoning_summary_text", output_index=0), saying("he"), saying("llo"),
        ended(usage={"input_tokens": 7, "output_tokens": 2}), seen=seen,
    )  # fmt: skip

    assert answer == Answer(AssistantMessage("hello", (), "hm"), "stop", Usage(7, 2))
    assert seen == [Delta("hm", "reasoning"), Delta("he"), Delta("llo")]


def test_several_messages_are_paragraphs_of_one_text() -> None:
    answer = assemble(
        saying("I look.", item_id="m", output_index=0), done(said("I look."), 0), *streamed("x", 1, ONE, A),
        saying("Then", item_id="n", output_index=2), done(said("Then more.", "n"), 2), ended(),
    )  # fmt: skip

    assert answer.message.text == "I look.\n\nThen more."


def test_a_refusal_is_text() -> None:
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}

    assert assemble(saying("I will", "refusal"), ended()).message.text == "I will"
    assert assemble(done(refusal), ended()).message.text == "I will not."


def test_reasoning_is_kept_with_what_it_led_to() -> None:
    second, third = ({**THOUGHT, "id": id} for id in ("s", "t"))

    answer = assemble(
        done(THOUGHT, 0), done(said("I look."), 1), *streamed("x", 2, ONE, A), done(second, 3),
        *streamed("y", 4, {**ONE, "call_id": "b"}, B), done(third, 5), ended(),
    )  # fmt: skip

    assert answer.message.reasoning_items == (
        ReasoningItem(json.dumps({"summary": [], **THOUGHT}), "m"),
        ReasoningItem(json.dumps({"summary": [], **second}), "m", before_call=1),
    )


def test_fields_that_are_not_of_the_format_go_back_with_their_items() -> None:
    signed = {"extra_content": {"signature": "s"}}
    answer = assemble(
        done(THOUGHT, 0), done({**said("I look."), "phase": "commentary"}, 1),
        *streamed("x", 2, ONE | signed, A), done(THOUGHT, 3), *streamed("y", 4, OTHER, B), ended(),
    )  # fmt: skip

    for source, kept in (("m", True), ("another", False)):
        items = render_input(source, ModelRequest("", (answer.message,), ()))
        items = [item for item in items if item.get("type") != "reasoning"]
        assert [(item.get("phase"), item.get("extra_content")) for item in items] == [
            ("commentary" if kept else None, None), (None, signed["extra_content"] if kept else None), (None, None)
        ]  # fmt: skip


def test_reasoning_that_is_only_an_id_is_not_kept() -> None:
    bare = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}

    message = assemble(done(bare, 0), done(said("hi"), 1), ended()).message

    assert (message.reasoning, message.reasoning_items) == ("hm", ())


def test_the_last_version_of_reasoning_counts() -> None:
    """Providers change the encrypted content between the announcement and the whole item."""
    announced = {"type": "response.output_item.added", "output_index": 0, "item": {**THOUGHT, "encrypted_content": "x"}}

    message = assemble(announced, done({**THOUGHT, "status": "completed"}, 0), done(said("hi"), 1), ended()).message

    assert [json.loads(item.content) for item in message.reasoning_items] == [THOUGHT]


def test_the_halves_of_a_character_in_two_events_are_joined() -> None:
    seen = list[Delta]()
    assert assemble(saying("\ud83d"), saying("\ude00"), ended(), seen=seen).message.text == "😀"
    assert "".join(each.text for each in seen) == "😀"


def test_the_status_counts_more_than_the_name_of_the_event() -> None:
    cut = {"type": "response.completed", "response": {"status": "incomplete"}}

    assert assemble(saying("he"), cut).stop_reason == "length"


@rows(
    ("event", "retryable", "told"),
    [
        ({"type": "error", "code": "server_error", "message": "oh"}, True, "server_error: oh"),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}}, True, "slow"),
        ({"type": "error", "code": "context_length_exceeded", "message": "too long"}, False, "too long"),
        ({"error": {"message": "overloaded"}}, True, "overloaded"),
        ({"error": {"code": 502, "message": "upstream"}}, True, "502: upstream"),
        ({"error": {"code": 400, "message": "upstream"}}, False, "400: upstream"),
        (ended("failed", error={"code": "server_error", "message": "oh"}), True, "oh"),
        (ended("failed", error={"code": "invalid_prompt", "message": "no"}), False, "invalid_prompt: no"),
        (ended("failed", error={"code": "image_too_large", "message": "no"}), False, "image_too_large"),
        (ended("failed", error={"code": "model_not_found", "message": "no"}), False, "model_not_found"),
        (ended("failed", error={"code": "model_not_found_yet", "message": "wait"}), True, "wait"),
        (ended("failed"), True, "the response was failed"),
        (ended("cancelled"), True, "the response was cancelled"),
        ([1], True, "not an object"),
        ("x", True, "not an object"),
        (None, True, "not an object"),
    ],
)
def test_errors_say_whether_asking_again_may_help(event: object, retryable: bool, told: str) -> None:
    with pytest.raises(ModelError) as caught:
        assemble(saying("he"), event)

    assert told in str(caught.value)
    assert caught.value.retryable is retryable


def test_a_server_that_does_not_stream_is_understood() -> None:
    call = {"type": "function_call", "id": "x", **ONE, "arguments": A}
    response = {"object": "response", "status": "completed", "output": [THOUGHT, said("hi"), call], "error": None}

    answer = assemble(response)

    assert answer.message.text == "hi"
    assert answer.message.calls == (RequestedCall("a", "note", A),)
    assert [item.before_call for item in answer.message.reasoning_items] == [None]
    with pytest.raises(ModelError):
        assemble({"object": "response", "status": "failed", "output": [], "error": {"code": "x", "message": "oh"}})


@rows(
    "event",
    [
        {},
        {"type": 7},
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": 7},
        {"type": "response.output_item.done", "item": None},
        {"type": "response.output_item.added", "item": {"type": "web_search_call", "id": "w"}, "output_index": "0"},
        {"type": "response.output_item.done", "item": {"type": "message", "content": [None, 7, {"text": None}]}},
        {"type": "response.function_call_arguments.done", "arguments": 1},
        {"type": "a.new.kind.of.event", "delta": "x"},
    ],
)
def test_unknown_events_are_left_out(event: Event) -> None:
    assert assemble(saying("hello"), event, ended()).message == AssistantMessage("hello")


# However a response is split, interleaved, numbered and named, the same calls come out.


SAYS = st.sampled_from(["both", "id", "index", "changing ids", "neither"])
LEFT_OUT = st.sampled_from(["nothing", "announced", "streamed"])


@pytest.mark.slow
@given(calls=CALLS, says=SAYS, left_out=LEFT_OUT, repeats=st.booleans(), random=st.randoms(use_true_random=False))
def test_law_any_splitting_interleaving_and_omission_gives_the_same_calls(
    calls: Any, says: str, left_out: str, repeats: bool, random: Any
) -> None:
    items = [_item(number, name, json.dumps(given)) for number, (name, given) in enumerate(calls)]
    streams = [_stream(number, item, says, left_out, repeats, random) for number, item in enumerate(items)]
    has_index = says in ("both", "index") or (says == "changing ids" and left_out != "announced")

    events = [event for stream in streams for event in stream]
    if has_index:  # which tells the order of calls
        events = interleave(streams, random)

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
    return [*announced, *streamed, whole(*place(), **facts, arguments=text)]


def _calls_of(events: list[Event]) -> list[tuple[str, str, str]]:
    assembly = ResponseAssembly("m")
    for event in events:
        assembly.feed(event)
    return [(call.id, call.name, call.arguments) for call in assembly.answer().message.calls]


# Requests

BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})
PNG = Image("image/png", b"\x89PNG")


def items_of(*messages: Message, model: str = "m") -> list[dict[str, Any]]:
    return render_input(model, ModelRequest("", messages, (BASH,)))


def thought(id: str, before_call: int | None = None, model: str = "m") -> ReasoningItem:
    return ReasoningItem(json.dumps({"type": "reasoning", "id": id}), model, before_call)


def test_a_conversation_is_rendered_as_items() -> None:
    call = RequestedCall("a", "bash", '{"command": "ls"}')

    items = items_of(
        UserMessage("go"),
        AssistantMessage("I look.", (call,), "hm"),
        ToolMessage("a", ToolResult("x")),
        AssistantMessage("Done."),
    )

    assert items == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "assistant", "content": "Done."},
    ]


def test_a_request_is_rendered_for_the_responses_api() -> None:
    assert responses_body("gpt-5-mini", ModelRequest("Be brief.", (UserMessage("go"),), (BASH,))) == {
        "model": "gpt-5-mini",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "go"}],
        "tools": [
            {"type": "function", "name": "my.bash", "description": "Run it.", "parameters": {"type": "object"},
             "strict": False},
        ],
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }  # fmt: skip


@rows(
    ("model", "asked"),
    [
        ("o4-mini", True),
        ("qwen/qwen3", True),
        ("gpt-4o", False),
        ("openai/gpt-4.1", False),
        ("gpt-5-chat-latest", False),
    ],
)
def test_encrypted_reasoning_is_asked_for_where_a_model_has_it(model: str, asked: bool) -> None:
    assert ("include" in responses_body(model, ModelRequest("", ()))) is asked


def test_reasoning_stands_right_before_what_it_led_to_for_the_model_that_wrote_it() -> None:
    """A provider refuses a record of reasoning that nothing follows."""
    calls = tuple(RequestedCall(id, "bash", "{}") for id in ("a", "b"))
    thoughts = (thought("t"), thought("u", 0), thought("v", 1))

    def sent(text: str, model: str = "m") -> list[str]:
        items = items_of(AssistantMessage(text, calls, "hm", thoughts), model=model)
        return [item.get("id") or item.get("call_id") or item["role"] for item in items]

    assert sent("I look.") == ["t", "assistant", "u", "a", "v", "b"]
    assert sent("") == ["u", "a", "v", "b"]
    assert sent("I look.", model="other") == ["assistant", "a", "b"]


def test_images_are_parts_of_what_people_say_and_of_what_tools_answer() -> None:
    part = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"}

    items = items_of(UserMessage("look", (PNG,)), ToolMessage("a", ToolResult("", images=(PNG,))))

    assert items == [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, part]},
        {"type": "function_call_output", "call_id": "a", "output": [part]},
    ]


def test_a_response_input_holds_nothing_that_a_provider_would_refuse() -> None:
    items = items_of(AssistantMessage("\ud800", (RequestedCall("a", "", "{"), RequestedCall("b", "my.bash", "[1]"))))

    assert items[0]["content"] == "\ufffd"
    assert [(item["name"], item["arguments"]) for item in items[1:]] == [("unnamed", "{}"), ("my.bash", "{}")]
