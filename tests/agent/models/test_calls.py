"""From what the model wrote to calls that run or are answered: ids, strict arguments, cut-off calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.calls import LONGEST_ID, read_calls, with_ids
from agent.models.model import Answer
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import AssistantMessage, RequestedCall, StopReason
from tests.tables import rows


def read(*calls: RequestedCall, stop_reason: StopReason = "tool_calls", turn: int = 0) -> tuple[ToolCall, ...]:
    return read_calls(Answer(AssistantMessage(calls=calls), stop_reason), {"bash": "admin", "read": "read"}, turn=turn)


def flaw(arguments: str, stop_reason: StopReason = "tool_calls") -> str | None:
    [call] = read(RequestedCall("a", "bash", arguments), stop_reason=stop_reason)
    assert call.flaw is None or call.arguments == {}
    return call.flaw


def ids(*given: str, turn: int = 0) -> list[str]:
    return [call.id for call in read(*(RequestedCall(id, "bash", "{}") for id in given), turn=turn)]


def test_a_complete_call_is_read() -> None:
    [call] = read(RequestedCall("a", "read", '{"path": "x", "lines": [1, 2]}'))

    assert call == ToolCall("a", "read", {"path": "x", "lines": (1, 2)}, "read", None)


def test_an_unknown_tool_counts_as_one_that_writes() -> None:
    assert read(RequestedCall("a", "rm", "{}"))[0].category == "write"


@rows("arguments", ["", " \n", "null", " null ", "{}"])
def test_empty_and_null_arguments_mean_no_arguments(arguments: str) -> None:
    assert read(RequestedCall("a", "bash", arguments)) == (ToolCall("a", "bash", {}, "admin"),)


def test_the_models_own_ids_are_kept() -> None:
    assert ids("call_1", "x y", "é", "a" * LONGEST_ID) == ["call_1", "x y", "é", "a" * LONGEST_ID]


@rows("bad", ["", " ", "a" * (LONGEST_ID + 1)])
def test_ids_that_are_missing_or_too_long_are_ours(bad: str) -> None:
    assert ids("a", bad, turn=2) == ["a", "c0002p001"]


def test_the_second_use_of_an_id_in_a_turn_is_ours() -> None:
    assert ids("a", "a", "b", "a") == ["a", "c0000p001", "b", "c0000p003"]


def test_ids_of_the_loop_never_equal_ids_of_the_model() -> None:
    assert ids("", "c0000p000", "c0000p000") == ["c0000p001", "c0000p000", "c0000p002"]


@pytest.mark.slow
@given(st.lists(st.sampled_from(["", "a", "b", "c0000p000", "c0000p001", "c0000p002", "x" * 65])))
def test_law_ids_are_unique_and_deterministic(given_ids: list[str]) -> None:
    found = ids(*given_ids)

    assert len(set(found)) == len(given_ids)
    assert all(0 < len(id) <= LONGEST_ID for id in found)
    assert found == ids(*given_ids)


@rows(
    ("arguments", "said"),
    [
        ('{"a": 1,}', "arguments are not valid JSON: "),
        (
            '{"a": 1 "b": 2}',
            "arguments are not valid JSON: expecting ',' delimiter at character 9; send one JSON object",
        ),
        ("{'a': 1}", "arguments are not valid JSON"),
        ("ls -l", "arguments are not valid JSON"),
        ('{"a": 1} {"b": 2}', "arguments are not valid JSON: extra data at character 10"),
        ('{"a": "\n"}', "arguments are not valid JSON: invalid control character"),
        ('{"a": "\\x"}', "arguments are not valid JSON: invalid \\escape"),
        ('{"a": 1, "a": 2}', "arguments have the key 'a' twice"),
        ('{"a": {"b": 1, "b": 1}}', "arguments have the key 'b' twice"),
        ('{"a": NaN}', "arguments contain NaN"),
        ('{"a": -Infinity}', "arguments contain -Infinity"),
        ('{"a": 1e999}', "arguments contain the number 1e999, which is out of range"),
        ('{"a": ' + "9" * 5000 + "}", "arguments contain a number of 5000 digits"),
        ('"{\\"a\\": 1}"', "arguments are a JSON text, not an object; send the object itself"),
        ("[1]", "arguments are a JSON array, not an object"),
        ("7", "arguments are a JSON number, not an object"),
        ("true", "arguments are a JSON boolean, not an object"),
        ('{"a": "\\ud800"}', "arguments contain half a character"),
        ('{"\\ud800": 1}', "arguments contain half a character"),
        ('{"a": [' + "[" * 100_000 + "]" * 100_000 + "]}", "arguments are nested too deeply"),
    ],
)
def test_arguments_that_are_not_one_json_object_are_flawed(arguments: str, said: str) -> None:
    assert (flaw(arguments) or "").startswith(said)


WHOLE = '{"a": "\\u00e9\\n", "b": [1.5e-3, true, null], "c": {"d": -12}}'


@rows("length", range(1, len(WHOLE)))
def test_arguments_that_end_in_the_middle_are_truncated_whatever_the_finish_reason(length: int) -> None:
    """Requirements 6: a call whose JSON is unterminated is never executed."""
    assert (flaw(WHOLE[:length]) or "").startswith(f"truncated: the arguments break off after {length} characters")


@rows("stop_reason", ["length", "content_filter"])
def test_whole_calls_of_an_answer_that_was_cut_off_are_kept(stop_reason: StopReason) -> None:
    whole = RequestedCall("a", "bash", '{"command": "ls"}')
    cut = RequestedCall("b", "bash", '{"command": "rm -rf /tm')

    calls = read(whole, cut, stop_reason=stop_reason)

    assert calls[0].flaw is None
    assert (calls[1].flaw or "").startswith("truncated")


@rows("arguments", ["", '{"a": x', '{"a": 1,}'])
def test_a_call_that_may_be_incomplete_is_flawed_as_truncated(arguments: str) -> None:
    assert (flaw(arguments, "length") or "").startswith("truncated")


def test_an_earlier_call_with_bad_json_is_not_called_truncated() -> None:
    calls = read(RequestedCall("a", "bash", "{x}"), RequestedCall("b", "bash", "{}"), stop_reason="length")

    assert (calls[0].flaw or "").startswith("arguments are not valid JSON")
    assert calls[1].flaw is None


@rows("name", ["", "  "])
def test_a_call_without_a_name_is_flawed(name: str) -> None:
    [call] = read(RequestedCall("a", name, "{}"))

    assert call == ToolCall("a", "unnamed", {}, "write", "the call has no tool name; name one of the tools")


def test_the_conversation_carries_the_ids_of_the_loop() -> None:
    message = AssistantMessage("x", (RequestedCall("", "bash", "{}"), RequestedCall("b", "", "{oops")))

    calls = read(*message.calls)

    assert with_ids(message, calls) == AssistantMessage(
        "x", (RequestedCall("c0000p000", "bash", "{}"), RequestedCall("b", "unnamed", "{oops"))
    )
