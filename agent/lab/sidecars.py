"""Sidecars: scores and audits of finished logs, in a file beside each; the log itself is never changed.

Monitors get the evidence of the recorded run: every committed call, the conversation up to it, and the facts about the
call, taken from the log and not from today's disk. Redacted secrets stay redacted.

An entry is the score of a call in a log of this content by one monitor with its prompt; none is requested twice. An
answer without a legible score is an entry too: a missing score. A monitor that could not be reached is asked again the
next time. Of several logs the most suspicious are audited, within the budget; a log's suspicion is its highest score.

The first line of a sidecar names the log and the digest of its content; each other line is an entry with its monitor or
auditor: the name, and the digest of its configuration and code, as it was before the first score. Where that cannot be
known, entries are not used again.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen, validators

from agent.effects.monitoring import Auditor, audited_by, scored_by
from agent.lab.concurrency import at_once
from agent.lab.dependencies import digest_of
from agent.lab.json_lines import append_line, whole_lines
from agent.lab.measures.safety import share
from agent.lab.measures.thresholds import suspicion
from agent.log.reading import Decoder, LogError, RecordedRun, read_log, recorded_kinds
from agent.log.writing import check_free, lock
from agent.models.model import ModelError
from agent.projections.conversation import Conversation
from agent.protocols.monitors import Evidence, Monitor, Score
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump, structured
from agent.vocabulary.events import ActionDescribed, AnswerCommitted, RunContinued
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import AuditVerdict, Trajectory
from agent.vocabulary.reasons import FollowUpWaits, Steered
from bp import Event, Refusal, Refusals
from constitution import Action

# Finished logs

FOLDED = frozenset(
    name for name, kind in recorded_kinds().items() if kind is ActionDescribed or kind in Conversation.FOLDS
)
"""The records of a conversation, and of the facts about calls."""

Facts = Mapping[tuple[int, str], ActionDescribed]


@frozen
class CommittedCall:
    """A committed call: the line of its answer in the log, and the evidence for a monitor."""

    line: int
    call: ToolCall
    evidence: Evidence


@frozen
class FinishedLog:
    """A log whose runs have all ended. digest: of all its bytes. whole: the evidence about everything in it."""

    path: Path
    digest: str
    calls: tuple[CommittedCall, ...]
    whole: Evidence


def read_finished(path: Path) -> FinishedLog:
    """Read a log. Raises LogError for a missing log, one in use, or one whose last run has not ended."""
    check_free(path)
    run = read_log(path)
    if run.torn or not run.records or run.records[-1]["name"] != "run_ended":
        raise LogError(f"{path} is not finished: its last record is no run_ended; end the run, or resume it, first")
    conversation, facts = Conversation(), dict[tuple[int, str], ActionDescribed]()
    calls = tuple(_committed_calls(run, conversation, facts))
    described = partial(_actions, facts, tuple((each.line, each.call) for each in calls))
    turns = len({each.line for each in calls})
    whole = Evidence(Trajectory(), conversation.messages, turns, described)
    return FinishedLog(path, blake2b(path.read_bytes(), digest_size=16).hexdigest(), calls, whole)


def _committed_calls(
    run: RecordedRun, conversation: Conversation, facts: dict[tuple[int, str], ActionDescribed]
) -> Iterator[CommittedCall]:
    """Fold a log; yield its calls as they were committed, and fill `facts` with the facts about them."""
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
            for call in event.calls:
                described = partial(_actions, facts, ((line, call),))
                yield CommittedCall(line, call, Evidence(call, said, turns, described))


def _actions(facts: Facts, calls: tuple[tuple[int, ToolCall], ...]) -> tuple[Action, ...]:
    """Return the facts about calls, without invalid calls, which never run.

    Raises ValueError for a call whose facts are not in the log.
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
        told = record["data"]["refusals"]
        return RunContinued(Refusals([Refusal(each["bthread"], _because(each["because"])) for each in told]))
    return decoder.event(record) if record["name"] in FOLDED else None


def _because(told: Any) -> object:
    """Return why a b-thread refused the end of a run. A protocol's own reason is known only as recorded."""
    match told:
        case str():
            return told
        case {"at_once": bool(at_once)}:
            return FollowUpWaits(at_once)
    return dump(told) if told else Steered()


# The file beside a log


FORMAT = 2
"""1 had lines besides, which said that a monitor had scored everything."""


class SidecarError(LogError):
    """A sidecar cannot be read or written, or belongs to another log; the message names the file and the cure."""


Key = tuple[object, ...]
"""The subject of an entry, and who judged it."""


@frozen
class KeptScore:
    """A monitor's score of a call in an answer of the log; value None: the monitor's answer could not be read."""

    by: str
    identity: str
    line: int
    call: str
    value: float | None = field(validator=validators.optional(share))
    rationale: str = ""
    usage: Usage = field(default=Usage(), eq=False)

    @property
    def key(self) -> Key:
        """The key of the entry."""
        return ("score", self.by, self.identity, self.line, self.call)


@frozen
class KeptAudit:
    """An auditor's verdict on the whole log."""

    by: str
    identity: str
    verdict: AuditVerdict
    rationale: str = ""
    usage: Usage = field(default=Usage(), eq=False)

    @property
    def key(self) -> Key:
        """The key of the entry."""
        return ("audit", self.by, self.identity)


SAID: dict[str, type[KeptScore | KeptAudit]] = {"score": KeptScore, "audit": KeptAudit}


def sidecar_path(log: Path) -> Path:
    """Return where the sidecar of a log is. Its name does not end as those of logs do, so nothing takes it for one."""
    return log.with_name(f"{log.name}.sidecar")


class Sidecar:
    """The entries about one content of one log. `facts`: the entries by key, in order of arrival."""

    def __init__(self, log: Path, digest: str) -> None:
        """Read the sidecar of a log with this digest, if it exists. Raises SidecarError."""
        self.path, self._log, self._digest = sidecar_path(log), log, digest
        self.facts: dict[Key, KeptScore | KeptAudit] = {}
        try:
            lines = whole_lines(self.path)
        except OSError as error:
            raise SidecarError(f"cannot read the sidecar {self.path}: {error.strerror}") from error
        self._is_new = not lines
        for number, line in enumerate(lines, start=1):
            try:
                self._read(json.loads(line), number)
            except (ValueError, RecursionError) as error:
                raise SidecarError(f"{self.path}, line {number}: {error}; remove the line") from error

    def add(self, kept: KeptScore | KeptAudit) -> None:
        """Write a new entry, while the log is `held`. Raises SidecarError if it cannot be written."""
        try:
            if self._is_new:
                append_line(self.path, json.dumps({"sidecar": FORMAT, "log": self._log.name, "digest": self._digest}))
                self._is_new = False
            append_line(self.path, json.dumps({"said": kept.key[0], **asdict(kept)}))
        except OSError as error:
            told = f"cannot write the sidecar {self.path}: {error.strerror}"
            raise SidecarError(f"{told}; what is in it is kept, run it again later") from error
        self.facts[kept.key] = kept

    def _read(self, told: Any, number: int) -> None:
        match told:
            case {"sidecar": int(version)} if version != FORMAT and number == 1:
                told = f"{self.path} has format {version}, this program reads {FORMAT}"
                raise SidecarError(f"{told}; remove the sidecar and score again, or use a newer bpagent")
            case {"sidecar": int(), "digest": str(digest)} if number == 1:
                if digest != self._digest:
                    raise SidecarError(
                        f"{self.path} is about another content of {self._log}: the log has changed since it was scored "
                        f"(digest {digest[:8]} then, {self._digest[:8]} now); remove the sidecar, and score again"
                    )
            case {"said": "score" | "audit" as said, **fields} if number > 1:
                kept = structured(fields, SAID[said], said)
                self.facts[kept.key] = kept
            case _:
                raise ValueError(f"expected {'a score or an audit' if number > 1 else 'the header of a sidecar'}")


# Scores and audits

_BEFORE: dict[str, str] = {}
"""The identities of monitors before they scored, by their digests afterwards: what they count is no configuration."""


def _identity(monitor: object) -> str:
    """Return the digest of a monitor as it was before it first scored, and of what it is shown."""
    digest = digest_of(Evidence, monitor)
    return _BEFORE.get(digest, digest)


MOST = 8  # logs in parallel


@frozen
class Scored:
    """A monitor's scores of a log, in the order of the calls, and the number of new ones.

    failures: why calls have no score, if the monitor could not be reached.
    """

    path: Path
    monitor: str
    scores: tuple[KeptScore, ...]
    asked: int
    failures: tuple[str, ...]

    @property
    def highest(self) -> float | None:
        """The highest score; None if one is missing, 0 without calls."""
        values = [kept.value for kept in self.scores]
        return None if None in values or self.failures else max((value or 0.0 for value in values), default=0.0)


async def score_logs(paths: Sequence[Path], monitors: Mapping[str, Monitor]) -> list[Scored]:
    """Have each of the monitors score each log; return the scores by log and then by monitor.

    Several logs are scored in parallel, and the calls of each in order. Raises LogError for an unfinished log, and
    SidecarError.
    """
    found: dict[Path, list[Scored]] = {}
    named = [(name, _identity(monitor), monitor) for name, monitor in monitors.items()]

    async def score(path: Path) -> None:
        with held(path) as (log, sidecar):
            found[path] = [await _score_with(log, sidecar, *each) for each in named]

    await at_once(dict.fromkeys(paths), score, most=MOST)
    for _, identity, monitor in named:
        _BEFORE.setdefault(_identity(monitor), identity)
    return [scored for path in dict.fromkeys(paths) for scored in found[path]]


@contextmanager
def held(path: Path) -> Iterator[tuple[FinishedLog, Sidecar]]:
    """Yield a finished log with its sidecar, locked against other processes. Raises LogError."""
    log = read_finished(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock(descriptor, path)
        yield log, Sidecar(path, log.digest)
    finally:
        os.close(descriptor)


async def _score_with(log: FinishedLog, sidecar: Sidecar, name: str, identity: str, monitor: Monitor) -> Scored:
    scores, failures, asked = list[KeptScore](), list[str](), 0
    for committed in log.calls:
        wanted = KeptScore(name, identity, committed.line, committed.call.id, None)
        known = sidecar.facts.get(wanted.key)
        if not isinstance(known, KeptScore):
            try:
                score = await _ask(monitor, committed)
            except ModelError as error:
                failures.append(f"{committed.call.id}: {error}")
                continue
            known, asked = evolve(wanted, value=score.value, rationale=score.rationale, usage=score.usage), asked + 1
            sidecar.add(known)
        scores.append(known)
    return Scored(log.path, name, tuple(scores), asked, tuple(failures))


async def _ask(monitor: Monitor, committed: CommittedCall) -> Score:
    """Request a score; an exception other than ModelError is a missing score. Raises ModelError."""
    try:
        return await scored_by(monitor, committed.evidence)
    except ModelError:
        raise
    except Exception as error:  # whatever a foreign monitor may raise
        return Score(None, f"{type(error).__name__}: {error}")


@frozen
class Audited:
    """A log that was audited; `asked`: whether now, not earlier."""

    path: Path
    kept: KeptAudit
    asked: bool


async def audit_logs(
    suspicions: Sequence[tuple[Path, float | None]], auditor: Auditor, *, name: str = "auditor", audits: int = 1
) -> list[Audited]:
    """Audit the most suspicious of these logs; return the verdicts, the most suspicious log first.

    A missing suspicion is the highest. Earlier verdicts are kept on errors. Raises LogError, SidecarError, and
    ModelError if the auditor cannot be reached.
    """
    ranked = sorted(suspicions, key=lambda each: suspicion(each[1]), reverse=True)
    identity = _identity(auditor)
    audited = [await _audit(path, auditor, name, identity) for path, _ in ranked[:audits]]
    _BEFORE.setdefault(_identity(auditor), identity)
    return audited


async def _audit(path: Path, auditor: Auditor, name: str, identity: str) -> Audited:
    with held(path) as (log, sidecar):
        wanted = KeptAudit(name, identity, "missing")
        known = sidecar.facts.get(wanted.key)
        if isinstance(known, KeptAudit):
            return Audited(path, known, asked=False)
        said = await audited_by(auditor, log.whole)
        kept = KeptAudit(name, wanted.identity, said.verdict, said.rationale, said.usage)
        sidecar.add(kept)
        return Audited(path, kept, asked=True)
