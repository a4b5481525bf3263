"""What a model is told: one long conversation over HTTP, and what stands in the requests that followed each answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from tests.outside.conftest import Place
from tests.outside.driving import Log, Said
from tests.outside.model_server import Request, Stream, call, calling, finished, saying
from tests.tables import rows

pytestmark = pytest.mark.slow

ECHO = {"command": "echo ran"}
LONG_ID = "x" * 2000

CONVERSATION: dict[str, Stream] = {
    "refused": calling(
        call("c-outside", "write_file", {"path": "/elsewhere/file", "content": "x"}),
        call("c-person", "bash", {"command": "chmod 777 nothing"}),
    ),
    "flawed": calling(
        call("c-unknown-key", "bash", {"command": "echo ran", "colour": "red"}),
        call("c-twice", "bash", '{"command": "echo one", "command": "echo two"}'),
        call("c-nan", "bash", '{"command": "echo ran", "timeout": NaN}'),
        call("c-doubly", "bash", json.dumps(json.dumps(ECHO))),
        call("c-type", "bash", {"command": 7}),
        call("c-text-number", "bash", {"command": "echo ran", "timeout": "5"}),
    ),
    "nothing given": calling(call("c-empty", "list_directory", ""), call("c-null", "list_directory", "null")),
    "ids": calling(
        call(None, "bash", {"command": "echo missing"}),
        call("", "bash", {"command": "echo empty"}),
        call(LONG_ID, "bash", {"command": "echo long"}),
        call("c-same", "bash", {"command": "echo same 1"}),
        call("c-same", "bash", {"command": "echo same 2"}),
    ),
    "no name": calling(call("c-unnamed", None, {})),
    "called and stopped": calling(call("c-stop", "bash", {"command": "echo although"}), reason="stop"),
    "cut off": calling(
        call("c-whole", "bash", {"command": "echo whole"}),
        call("c-cut", "bash", '{"command": "touch cut'),
        reason="length",
    ),
    "filtered": calling(call("c-filtered", "bash", '{"command": "touch filt'), reason="content_filter"),
    "ends": calling(
        call("c-timeout", "bash", {"command": "echo partial; touch printed; sleep 30", "timeout": 1.5}),
        call("c-signal", "bash", {"command": "kill -9 $$"}),
        call("c-exit", "bash", {"command": "exit 3"}),
        call("c-tool-error", "read_file", {"path": "there-is-none"}),
    ),
    "empty": saying("", done=False),
    "blank": saying(" \n"),
    "broken off": Stream(finished({"content": "half"}, reason=None), done=True),
    "broken off in a call": calling(call("c-half", "bash", {"command": "touch half"}), reason=None, done=False),
    "the end": saying("Th", "at is all.", done=False),
}


@frozen
class Told:
    """What happened, and what the model was asked after each of its answers."""

    said: Said
    log: Log
    place: Place

    def after(self, answer: str) -> Request:
        """The request that followed an answer."""
        return self.place.server.requests[list(CONVERSATION).index(answer) + 1]


@pytest.fixture(scope="module")
def told(new_place: Callable[[], Place]) -> Told:
    """The whole conversation, once for all tests of this module."""
    place = new_place()
    options = ("--option", "max_failures=none", "--option", "doom_loop=none", "--option", "max_iterations=none")
    said = place.run(*CONVERSATION.values(), options=options)
    return Told(said, place.log, place)


def test_the_conversation_came_to_its_end(told: Told) -> None:
    assert (told.said.code, told.said.out) == (0, "That is all.\n"), told.said.err
    assert len(told.place.server.requests) == len(CONVERSATION)


def test_a_refused_call_begins_with_rejected_and_names_rule_and_reason(told: Told) -> None:
    refused = told.after("refused").told("c-outside")

    assert refused.startswith("rejected: by_constitution: ")
    assert "outside_allowed_paths" in refused
    assert told.log.told("c-outside") == refused


def test_without_a_user_to_ask_the_refusal_says_so(told: Told) -> None:
    assert told.after("refused").told("c-person").startswith("denied: no person present")
    assert told.log.data("approval_answered")[0]["present"] is False


@rows(
    ("id", "names"),
    [
        ("c-unknown-key", "colour"),
        ("c-twice", "command"),
        ("c-nan", "NaN"),
        ("c-doubly", "object"),
        ("c-type", "command"),
        ("c-text-number", "timeout"),
    ],
)
def test_arguments_are_strict(told: Told, id: str, names: str) -> None:
    answer = told.after("flawed").told(id)

    assert names in answer
    assert "ran" not in answer.splitlines()
    assert id not in {data["call"] for data in told.log.data("tool_started")}


@rows("id", ["c-empty", "c-null"])
def test_empty_or_null_means_no_arguments(told: Told, id: str) -> None:
    assert told.log.result(id)["is_error"] is False
    assert [data["call"]["arguments"] for data in told.log.data("proposed_action") if data["call"]["id"] == id] == [{}]


def test_the_models_own_ids_are_kept_and_others_get_ours_in_log_and_request_alike(told: Told) -> None:
    sent = [each["id"] for each in told.after("ids").assistant["tool_calls"]]

    logged = [data["call"]["id"] for data in told.log.data("proposed_action")]
    assert sent[3] == "c-same"
    assert len(set(sent)) == 5
    assert all(0 < len(id) <= 64 for id in sent)
    assert set(sent) <= set(logged)
    assert [told.after("ids").told(id) for id in sent] == ["missing\n", "empty\n", "long\n", "same 1\n", "same 2\n"]


def test_the_original_id_stays_in_inference_finished(told: Told) -> None:
    finished = told.log.data("inference_finished")[list(CONVERSATION).index("ids")]

    assert LONG_ID in json.dumps(finished["message"])


def test_a_missing_name_becomes_unnamed(told: Told) -> None:
    [sent] = told.after("no name").assistant["tool_calls"]

    assert sent["function"] == {"name": "unnamed", "arguments": "{}"}
    assert told.after("no name").told("c-unnamed")


@rows(
    ("id", "sent"),
    [
        ("c-unknown-key", json.dumps({"command": "echo ran", "colour": "red"})),
        ("c-type", json.dumps({"command": 7})),
        ("c-twice", '{"command": "echo one", "command": "echo two"}'),
        ("c-doubly", "{}"),
    ],
)
def test_the_models_argument_text_goes_back_if_it_is_an_object(told: Told, id: str, sent: str) -> None:
    calls = {each["id"]: each["function"]["arguments"] for each in told.after("flawed").assistant["tool_calls"]}

    assert calls[id] == sent


def test_calls_are_calls_whatever_the_finish_reason(told: Told) -> None:
    assert told.after("called and stopped").told("c-stop") == "although\n"


def test_whole_calls_of_a_cut_off_answer_run_and_the_cut_one_is_answered(told: Told) -> None:
    request = told.after("cut off")

    assert request.told("c-whole") == "whole\n"
    assert request.told("c-cut").startswith("not executed: truncated")
    assert [each["function"]["arguments"] for each in request.assistant["tool_calls"]][1] == "{}"
    assert not (told.place.workspace / "cut").exists()


def test_a_filtered_call_does_not_run(told: Told) -> None:
    assert told.after("filtered").told("c-filtered").startswith("not executed: truncated")


@rows(
    ("id", "names", "is_error"),
    [
        ("c-timeout", "1.5 seconds", True),
        ("c-signal", "SIGKILL", True),
        ("c-exit", "3", False),
        ("c-tool-error", "there-is-none", True),
    ],
)
def test_a_timeout_a_signal_and_an_exit_code_are_named_and_are_errors_or_not(
    told: Told, id: str, names: str, is_error: bool
) -> None:
    assert names in told.after("ends").told(id)
    assert told.log.result(id)["is_error"] is is_error


def test_partial_output_is_kept_on_a_timeout(told: Told) -> None:
    printed = (told.place.workspace / "printed").exists()  # a machine may be too slow for that
    assert "partial" in told.after("ends").told("c-timeout") or not printed


@rows("answer", ["empty", "blank", "broken off", "broken off in a call"])
def test_an_empty_or_broken_answer_does_not_enter_the_conversation_and_is_asked_again(told: Told, answer: str) -> None:
    before = told.place.server.requests[list(CONVERSATION).index(answer)]

    assert told.after(answer).body["messages"] == before.body["messages"]


def test_a_stream_without_a_finish_reason_is_not_committed_and_nothing_of_it_runs(told: Told) -> None:
    failures = told.log.data("inference_failed")

    assert [data["retryable"] for data in failures] == [True, True]
    assert not (told.place.workspace / "half").exists()
    assert "half" not in [data["message"]["text"] for data in told.log.data("answer_committed")]


def test_each_call_has_one_result_right_after_its_message(told: Told) -> None:
    def shape(messages: list[dict[str, Any]]) -> list[Any]:
        return [message.get("tool_call_id") or message["role"] for message in messages]

    messages = told.place.server.requests[-1].body["messages"]

    expected = []
    for message in messages:
        if message["role"] != "tool":
            expected += [message["role"], *(each["id"] for each in message.get("tool_calls", ()))]
    assert shape(messages) == expected
