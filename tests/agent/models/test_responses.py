"""From the events of a responses stream to one whole answer; how calls come about is in `test_hostile_servers`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.model import Answer, Delta, ModelError
from agent.models.responses import ResponseAssembly
from agent.vocabulary.messages import AssistantMessage, ReasoningItem, RequestedCall, Usage
from tests.agent.models.shapes import CALLS, A, B, Event, added, ended, interleave, piece, streamed, whole
from tests.tables import rows

THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "secret"}
NOTE: dict[str, Any] = {"call_id": "a", "name": "note"}


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
        saying("I look.", item_id="m", output_index=0), done(said("I look."), 0), *streamed("x", 1, NOTE, A),
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
        done(THOUGHT, 0), done(said("I look."), 1), *streamed("x", 2, NOTE, A), done(second, 3),
        *streamed("y", 4, {**NOTE, "call_id": "b"}, B), done(third, 5), ended(),
    )  # fmt: skip

    assert answer.message.reasoning_items == (
        ReasoningItem(json.dumps({"summary": [], **THOUGHT}), "m"),
        ReasoningItem(json.dumps({"summary": [], **second}), "m", before_call=1),
    )


def test_reasoning_that_is_only_an_id_is_not_kept() -> None:
    bare = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}

    message = assemble(done(bare, 0), done(said("hi"), 1), ended()).message

    assert (message.reasoning, message.reasoning_items) == ("hm", ())


def test_the_last_version_of_reasoning_counts() -> None:
    """Providers change the encrypted content between the announcement and the whole item."""
    announced = {"type": "response.output_item.added", "output_index": 0, "item": {**THOUGHT, "encrypted_content": "x"}}

    message = assemble(announced, done({**THOUGHT, "status": "completed"}, 0), done(said("hi"), 1), ended()).message

    assert [json.loads(item.content) for item in message.reasoning_items] == [THOUGHT]


@rows(
    ("details", "reason"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "content_filter"), (None, "length")],
)
def test_an_incomplete_response_says_why(details: object, reason: str) -> None:
    assert assemble(saying("he"), ended("incomplete", incomplete_details=details)).stop_reason == reason


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
    call = {"type": "function_call", "id": "x", **NOTE, "arguments": A}
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
