"""From what the model wrote to calls that run or are answered: ids, strict arguments, cut-off calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.calls import read_calls, with_ids, without_repeats
from agent.models.model import Answer
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import CUT_OFF, LONGEST_ID, AssistantMessage, RequestedCall, StopReason
from tests.tables import rows

UNNAMED = "the call has no tool name; name one of the tools"


def read(*calls: RequestedCall, stop_reason: StopReason = "tool_calls", turn: int = 0) -> tuple[ToolCall, ...]:
    return read_calls(Answer(AssistantMessage(calls=calls), stop_reason), {"bash": "admin", "read": "read"}, turn=turn)


def flaw(arguments: str, stop_reason: StopReason = "tool_calls") -> str | None:
    [call] = read(RequestedCall("a", "bash", arguments), stop_reason=stop_reason)
    assert call.flaw is None or call.arguments == {}
    return call.flaw


def ids(*given: str, turn: int = 0) -> list[str]:
    return [call.id for call in read(*(RequestedCall(id, "bash", "{}") for id in given), turn=turn)]


@rows(
    ("name", "arguments", "call"),
    [
        ("read", '{"path": "x", "lines": [1, 2]}', ToolCall("a", "read", {"path": "x", "lines": (1, 2)}, "read", None)),
        *(("bash", nothing, ToolCall("a", "bash", {}, "admin")) for nothing in ("", " \n", "null", " null ", "{}")),
        ("an unknown tool", "{}", ToolCall("a", "an unknown tool", {}, "write")),
        *((name, "{}", ToolCall("a", "unnamed", {}, "write", UNNAMED)) for name in ("", "  ")),
    ],
)
def test_a_complete_call_is_read(name: str, arguments: str, call: ToolCall) -> None:
    assert read(RequestedCall("a", name, arguments)) == (call,)


@rows(
    ("given_ids", "found"),
    [
        (["call_1", "x y", "é", "a" * LONGEST_ID], ["call_1", "x y", "é", "a" * LONGEST_ID]),
        *((["a", bad], ["a", "c0002p001"]) for bad in ("", " ", "a" * (LONGEST_ID + 1))),
        (["a", "a", "b", "a"], ["a", "c0002p001", "b", "c0002p003"]),
        (["", "c0002p000", "c0002p000"], ["c0002p001", "c0002p000", "c0002p002"]),
    ],
)
def test_an_id_of_the_model_is_kept_unless_it_is_missing_too_long_or_used_before(
    given_ids: list[str], found: list[str]
) -> None:
    assert ids(*given_ids, turn=2) == found


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
        ('{"a": 1}</tool_call>', "arguments are not valid JSON: extra data at character 9"),
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


OFF = '{"command": "rm -rf /tm'


@rows(
    ("stop_reason", "arguments"),
    [(reason, arguments) for reason in CUT_OFF for arguments in (("{}", OFF), ("",), ('{"a": 1,}', "{}"), ("{x}",))],
)
def test_of_an_answer_that_was_cut_off_every_call_is_truncated(
    stop_reason: StopReason, arguments: tuple[str, ...]
) -> None:
    calls = read(*(RequestedCall("", "bash", text) for text in arguments), stop_reason=stop_reason)

    told = f"truncated: the answer was cut off ({stop_reason}); send the whole call again, or a shorter one"
    assert [call.flaw for call in calls] == [told] * len(arguments)


@rows(
    ("arguments", "real"),
    [
        *(
            (f"{before}{last}", last)
            for before in ("{}", "{} ", "{}{}", "null")
            for last in ('{"a": 1}', '{"a":', "{}")
        ),
        *((f"{WHOLE}{space}{WHOLE}", WHOLE) for space in ("", "\n")),
        (f"{WHOLE}{WHOLE}{WHOLE}", WHOLE),
        *(
            (text, text)
            for text in ("", "{}", " {} ", '{"a": 1}{"b": 2}', '{"a": 1}{}', WHOLE + WHOLE[:9], "{}x", "null")
        ),
    ],
)
def test_what_gateways_say_before_the_real_arguments_is_left_out(arguments: str, real: str) -> None:
    assert without_repeats(arguments) == real


def test_the_conversation_carries_the_ids_of_the_loop() -> None:
    message = AssistantMessage("x", (RequestedCall("", "bash", "{}"), RequestedCall("b", "", "{oops")))

    calls = read(*message.calls)

    assert with_ids(message, calls) == AssistantMessage(
        "x", (RequestedCall("c0000p000", "bash", "{}"), RequestedCall("b", "unnamed", "{oops"))
    )
