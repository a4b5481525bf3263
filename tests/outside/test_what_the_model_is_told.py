"""What a model is told: one long conversation over HTTP, and what stands in the requests that followed each answer."""

import json
import re
from collections.abc import Callable

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
        call("c-person", "bash", {"command": "curl http://example.com"}),
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


@rows(
    ("answer", "id", "told_of_it"),
    [
        ("refused", "c-outside", "rejected: by_constitution: .*outside_allowed_paths"),
        ("refused", "c-person", "denied: no person present"),
        ("flawed", "c-unknown-key", ".*colour"),
        ("flawed", "c-twice", ".*command"),
        ("flawed", "c-nan", ".*NaN"),
        ("flawed", "c-doubly", ".*object"),
        ("flawed", "c-type", ".*command"),
        ("flawed", "c-text-number", ".*timeout"),
        ("no name", "c-unnamed", "."),
        ("called and stopped", "c-stop", "although\n$"),
        ("cut off", "c-whole", "not executed: truncated"),
        ("cut off", "c-cut", "not executed: truncated"),
        ("filtered", "c-filtered", "not executed: truncated"),
        ("ends", "c-timeout", ".*1.5 seconds"),
        ("ends", "c-signal", ".*SIGKILL"),
        ("ends", "c-exit", ".*3"),
        ("ends", "c-tool-error", ".*there-is-none"),
    ],
)
def test_each_call_is_answered_with_what_became_of_it(told: Told, answer: str, id: str, told_of_it: str) -> None:
    said = told.after(answer).told(id)

    assert re.match(told_of_it, said, re.DOTALL), said
    assert told.log.told(id) == said


def test_refused_flawed_and_cut_calls_do_not_run(told: Told) -> None:
    started = [data["call"] for data in told.log.data("tool_started")]

    flawed = ("unknown-key", "twice", "nan", "doubly", "type", "text-number")
    assert not {"c-outside", "c-person", "c-cut", "c-filtered", "c-half", *(f"c-{name}" for name in flawed)} & {
        *started
    }
    assert not [name for name in ("cut", "filt", "half") if (told.place.workspace / name).exists()]
    assert told.log.data("approval_answered")[0]["present"] is False


def test_a_timeout_a_signal_and_an_error_of_a_tool_are_errors_and_an_exit_code_is_none(told: Told) -> None:
    errors = {"c-timeout": True, "c-signal": True, "c-tool-error": True, "c-exit": False}

    assert {id: told.log.result(id)["is_error"] for id in errors} == errors


def test_empty_or_null_means_no_arguments(told: Told) -> None:
    for id in ("c-empty", "c-null"):
        [call] = [data["call"] for data in told.log.data("proposed_action") if data["call"]["id"] == id]
        assert (call["arguments"], told.log.result(id)["is_error"]) == ({}, False)


def test_the_models_own_ids_are_kept_and_others_get_ours_in_log_and_request_alike(told: Told) -> None:
    sent = [each["id"] for each in told.after("ids").assistant["tool_calls"]]

    logged = [data["call"]["id"] for data in told.log.data("proposed_action")]
    finished = told.log.data("inference_finished")[list(CONVERSATION).index("ids")]
    assert sent[3] == "c-same"
    assert len(set(sent)) == 5
    assert all(0 < len(id) <= 64 for id in sent)
    assert set(sent) <= set(logged)
    assert [told.after("ids").told(id) for id in sent] == ["missing\n", "empty\n", "long\n", "same 1\n", "same 2\n"]
    assert LONG_ID in json.dumps(finished["message"])  # the original stays there


@rows(
    ("answer", "id", "sent"),
    [
        ("flawed", "c-unknown-key", ("bash", json.dumps({"command": "echo ran", "colour": "red"}))),
        ("flawed", "c-type", ("bash", json.dumps({"command": 7}))),
        ("flawed", "c-twice", ("bash", '{"command": "echo one", "command": "echo two"}')),
        ("flawed", "c-doubly", ("bash", "{}")),
        ("cut off", "c-cut", ("bash", "{}")),
        ("no name", "c-unnamed", ("unnamed", "{}")),
    ],
)
def test_the_models_argument_text_goes_back_if_it_is_an_object(
    told: Told, answer: str, id: str, sent: tuple[str, str]
) -> None:
    calls = {each["id"]: each["function"] for each in told.after(answer).assistant["tool_calls"]}

    assert (calls[id]["name"], calls[id]["arguments"]) == sent


def test_partial_output_is_kept_on_a_timeout(told: Told) -> None:
    printed = (told.place.workspace / "printed").exists()  # a machine may be too slow for that
    assert "partial" in told.after("ends").told("c-timeout") or not printed


@rows("answer", ["empty", "blank", "broken off", "broken off in a call"])
def test_an_empty_or_broken_answer_does_not_enter_the_conversation_and_is_asked_again(told: Told, answer: str) -> None:
    before = told.place.server.requests[list(CONVERSATION).index(answer)]

    assert told.after(answer).body["messages"] == before.body["messages"]


def test_a_stream_without_a_finish_reason_is_not_committed(told: Told) -> None:
    assert [data["retryable"] for data in told.log.data("inference_failed")] == [True, True]
    assert "half" not in [data["message"]["text"] for data in told.log.data("answer_committed")]


def test_each_call_has_one_result_right_after_its_message(told: Told) -> None:
    messages = told.place.server.requests[-1].body["messages"]

    expected = []
    for message in messages:
        if message["role"] != "tool":
            expected += [message["role"], *(each["id"] for each in message.get("tool_calls", ()))]
    assert [message.get("tool_call_id") or message["role"] for message in messages] == expected
