"""A finished log as monitors are shown it: every committed call, the conversation up to it, what it would have touched.

What was looked up on disk then is taken from the log; nothing is looked up today. Secrets that were kept out of the log
are kept out of what monitors see.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import frozen

from agent.log.decoding import Decoder
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.writing import check_free
from agent.projections.conversation import Conversation
from agent.protocols.monitors import Evidence
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump
from agent.vocabulary.events import ActionDescribed, AnswerCommitted, RunContinued
from agent.vocabulary.messages import Messages
from agent.vocabulary.questions import Trajectory
from agent.vocabulary.reasons import FollowUpWaits, Steered
from bp import Event, Refusal, Refusals
from constitution import Action

FOLDED = frozenset(
    {
        "action_described", "answer_committed", "call_answered", "follow_up_given", "history_given",
        "inference_requested", "messages_found", "prompt_given", "run_ended", "steering_given",
    }
)  # fmt: skip
"""Records that a conversation consists of, and what was found out about calls."""

Facts = Mapping[tuple[int, str], ActionDescribed]


@frozen
class Occasion:
    """A call that was committed: the line of its answer in the log, and what a monitor would have been shown of it."""

    line: int
    call: ToolCall
    evidence: Evidence


@frozen
class FinishedLog:
    """A log whose runs have all ended. digest: of all its bytes. whole: the evidence about everything in it."""

    path: Path
    digest: str
    occasions: tuple[Occasion, ...]
    whole: Evidence


def read_finished(path: Path) -> FinishedLog:
    """Read a log. Raises LogError for none, one that is in use, or one whose last run has not ended."""
    check_free(path)
    run = read_log(path)
    if run.torn or not run.records or run.records[-1]["name"] != "run_ended":
        raise LogError(f"{path} is not finished: its last record is no run_ended; end the run, or resume it, first")
    conversation, facts = Conversation(), dict[tuple[int, str], ActionDescribed]()
    occasions = tuple(_occasions(run, conversation, facts))
    described = partial(_actions, facts, tuple((each.line, each.call) for each in occasions))
    turns = len({each.line for each in occasions})
    whole = Evidence(Trajectory(), conversation.messages, turns, described)
    return FinishedLog(path, digest_of(path), occasions, whole)


def _occasions(
    run: RecordedRun, conversation: Conversation, facts: dict[tuple[int, str], ActionDescribed]
) -> Iterator[Occasion]:
    """Fold a log; yield its calls as they were committed, and fill `facts` with what is found out about them."""
    decoder, turns, latest = Decoder(), 0, 0
    for line, record in enumerate(run.records, start=2):
        decoder.learn(record)
        event = _event(record, decoder)
        if event is None:
            continue
        conversation.fold(event)
        if isinstance(event, ActionDescribed):
            facts[latest, event.call.id] = event
        elif isinstance(event, AnswerCommitted):
            turns, latest, said = turns + 1, line, conversation.so_far()
            yield from (_occasion(line, call, said, turns, facts) for call in event.calls)


def _occasion(line: int, call: ToolCall, said: Messages, turns: int, facts: Facts) -> Occasion:
    return Occasion(line, call, Evidence(call, said, turns, partial(_actions, facts, ((line, call),))))


def _actions(facts: Facts, calls: tuple[tuple[int, ToolCall], ...]) -> tuple[Action, ...]:
    """Return what was found out about calls; nothing of those with a flaw, which never run.

    Raises ValueError for one of which the log does not say it.
    """
    found = []
    for line, call in calls:
        described = facts.get((line, call.id))
        if call.flaw is None and (described is None or described.problem is not None):
            told = "nothing" if described is None else described.problem
            raise ValueError(f"what {call.id} would touch is not known: the log has {told}")
        if described is not None:
            found.append(described.facts)
    return tuple(found)


def _event(record: Mapping[str, Any], decoder: Decoder) -> Event | None:
    if record["name"] == "run_continued":
        return RunContinued(Refusals([_refusal(told) for told in record["data"]["refusals"]]))
    return decoder.event(record) if record["name"] in FOLDED else None


def _refusal(told: Mapping[str, Any]) -> Refusal:
    """Return why a b-thread had a run go on. A reason of a protocol's own is only known as it was recorded."""
    match told["because"]:
        case str() as text:
            return Refusal(told["bthread"], text)
        case {"at_once": bool(at_once)}:
            return Refusal(told["bthread"], FollowUpWaits(at_once))
        case reason:
            return Refusal(told["bthread"], dump(reason) if reason else Steered())


def digest_of(path: Path) -> str:
    """Return the digest of a log's content. Raises OSError."""
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()
