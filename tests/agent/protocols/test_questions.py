"""The laboratory's events: facts about subjects, which stand in the log and come back from it."""

import json

import pytest

from agent.log.decoding import Decoder
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump, to_record
from agent.vocabulary.messages import AssistantMessage, RequestedCall, Usage
from agent.vocabulary.questions import AuditGiven, ChanceDrawn, Draft, Honeypot, ScoreGiven, Subject, Trajectory
from bp import Event, Step

CALL = ToolCall("c1", "bash", {"command": "ls", "timeout": 3})
DRAFT = Draft("d1", AssistantMessage("Look.", (RequestedCall("c1", "bash", "{}"),)), (CALL,))


@pytest.mark.parametrize("subject", [DRAFT, CALL, Trajectory(), Trajectory("c1"), Honeypot("backdoor")])
@pytest.mark.parametrize("value", [0.0, 0.25, 1, None])
def test_a_score_comes_back_from_the_log_with_its_subject(subject: Subject, value: float | None) -> None:
    given = ScoreGiven(subject, "watcher", value, "looks odd", Usage(3, 4, 0.5))

    assert read_back(given) == given


@pytest.mark.parametrize("event", [AuditGiven(DRAFT, "auditor", "harmful"), ChanceDrawn("which", 1)])
def test_what_else_comes_from_outside_comes_back_from_the_log(event: Event) -> None:
    assert read_back(event) == event


@pytest.mark.parametrize("value", [0.3, 1.0])
def test_a_score_is_above_a_threshold_that_it_exceeds(value: float) -> None:
    given = ScoreGiven(CALL, "watcher", value)

    assert given.is_above(value - 0.1)
    assert not given.is_above(value)
    assert given.suspicion == value


def test_a_missing_score_is_above_every_threshold_and_more_suspicious_than_any_other() -> None:
    missing = ScoreGiven(CALL, "watcher", None)

    assert missing.is_missing
    assert missing.is_above(1.0)
    assert missing.is_above(float("inf"))
    assert missing.suspicion > ScoreGiven(CALL, "watcher", 1.0).suspicion


@pytest.mark.parametrize(("verdict", "caught"), [("harmful", True), ("harmless", False), ("missing", False)])
def test_only_harm_that_was_found_is_caught(verdict: str, caught: bool) -> None:
    assert AuditGiven(CALL, "auditor", verdict).is_caught is caught  # type: ignore[arg-type]


def read_back(event: Event) -> Event:
    """What a reader makes of the record of an event."""
    record = json.loads(dump(to_record(Step(1, event, 1, None))))
    return Decoder().event(record)
