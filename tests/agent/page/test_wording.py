"""What happened in words, from a log and while it happens: the terminal and the page say the same."""

import json

import pytest
from attrs import asdict

from agent.page.wording import WORDING, action_of, command_of, reason_of, recorded_call, told
from agent.protocols.asking import suspicion
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import plain
from agent.vocabulary.events import (
    AbortAsked,
    ActionChanged,
    ApprovalAnswered,
    BackoffStarted,
    DeadlineReached,
    GateRejected,
    InferenceFailed,
    RunContinued,
    SandboxLifted,
    StopAsked,
    SummaryFailed,
    SummaryRequested,
)
from agent.vocabulary.reasons import Declined, Ending, FollowUpWaits, Steered, Unfinished
from bp import Event, Refusal, Refusals
from constitution import Action, Level, Verdict
from tests.tables import rows

VERDICT = Verdict(Level.ask, rule="lose_work", explanation="rm would delete notes.txt")
REASONS = ("a text", VERDICT, Declined(VERDICT, "mine"), Ending("limit", "most"), Steered(), FollowUpWaits(True))
CALL = ToolCall("c1", "bash", {"command": "rm notes.txt"})
REFUSALS = Refusals(Refusal(f"b{number}", because) for number, because in enumerate(REASONS))


@pytest.mark.parametrize(
    "event",
    [
        GateRejected(CALL, REFUSALS),
        RunContinued(Refusals([Refusal("complete_to_finish", Unfinished("not yet"))])),
        ApprovalAnswered(CALL, True),
        ApprovalAnswered(CALL, False, "mine"),
        ApprovalAnswered(CALL, False, present=False),
        ActionChanged(CALL, Action("bash", "write", "/"), changes=("a.txt is another file",)),
        SandboxLifted(CALL, ("network",)),
        StopAsked("enough"),
        AbortAsked(),
        DeadlineReached(60.0),
        SummaryRequested("s1"),
        SummaryFailed("no answer"),
        InferenceFailed("d0", "no answer", True),
        BackoffStarted(2, 1000.0),
    ],
    ids=lambda event: event.name,
)
def test_an_event_is_told_in_the_same_words_as_its_record(event: Event) -> None:
    label, _, texts = told(event)

    assert (label, texts) == (WORDING[event.name].label, WORDING[event.name].texts(plain(event)))
    assert all(texts)


def test_a_protocol_says_on_the_page_what_it_said_in_the_run() -> None:
    because = suspicion("watcher", 0.927, 0.9)

    assert reason_of(asdict(because)) == str(because) == "watcher gives 0.93, and 0.90 is allowed"


def test_a_foreign_reason_is_shown_as_it_is() -> None:
    assert reason_of({"left": 3}) == '{"left": 3}'


@rows(
    ("tool", "arguments", "said"),
    [
        ("bash", {"command": "make serve", "background": True}, "make serve (in the background)"),
        ("bash", {"command": "make"}, "make"),
        ("write_file", {"path": "a.txt", "content": "x" * 2000}, "write_file a.txt (2,000 characters)"),
        ("edit", {"path": "a.txt", "oldText": "x", "newText": "y"}, "edit a.txt"),
        ("read_file", {"path": "a.txt"}, "read_file a.txt"),
        ("task", {"of": 1, "prompt": "x" * 100}, "task of=1 prompt=(100 characters)"),
    ],
)
def test_a_call_is_told_in_one_line(tool: str, arguments: dict[str, object], said: str) -> None:
    call = ToolCall("c", tool, arguments)

    assert action_of(call) == action_of(recorded_call(json.loads(json.dumps(plain(call))))) == said


def test_a_call_is_shown_whole_in_a_question() -> None:
    long = ToolCall("c", "write_file", {"path": "a.txt", "content": "x" * 100})

    assert command_of(ToolCall("c", "terminal", {"persistent": True, "command": "ls"})) == "ls"
    assert command_of(ToolCall("c", "read_file", {"path": "a.txt"})) == "read_file a.txt"
    assert command_of(long) == f'write_file path="a.txt" content="{"x" * 100}"'


@rows(
    ("answer", "said"),
    [
        ({"text": "keep my notes"}, "the user said no (keep my notes)"),
        ({"text": ""}, "the user said no"),
        ({"text": "", "present": False}, "no person present"),
    ],
)
def test_the_answer_of_the_user_is_set_apart_from_the_question(answer: dict[str, object], said: str) -> None:
    verdict = {"level": "ask", "rule": "lose_work", "explanation": "rm would delete notes.txt"}

    assert reason_of({"verdict": verdict, **answer}) == f"{said}: rm would delete notes.txt (rule lose_work)"
