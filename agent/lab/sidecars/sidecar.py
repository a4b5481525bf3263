"""Sidecar logs: scores and audits of finished runs, beside the log, since `run_ended` stays last in it."""

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import attrs
from attrs import Attribute, asdict, field, frozen

from agent.lab.json_lines import append_line, whole_lines
from agent.lab.measures.thresholds import suspicion
from agent.lab.sidecars.finished_log import digest_of
from agent.log.reading import LogError
from agent.vocabulary.conversion import structured
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import AuditVerdict


def identity_of(monitor: object) -> str:
    """Return the digest; the same in every process."""
    return blake2b(repr(_told(monitor)).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _told(value: Any) -> Any:
    """Return a value as something whose text is the same wherever it is made."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Mapping():
            return sorted((str(key), _told(item)) for key, item in value.items())
        case tuple() | list():
            return [_told(item) for item in value]
        case set() | frozenset():
            return sorted(repr(_told(item)) for item in value)
    if inspect.isroutine(value) or isinstance(value, type):
        return [_name(value), _source(value)]
    return [_name(type(value)), _source(type(value)), *_parts(value)]


def _parts(value: Any) -> list[Any]:
    """Return what an object was made with: its fields; of a model, its name."""
    if callable(getattr(value, "answer", None)) and isinstance(getattr(value, "name", None), str):
        return [value.name]
    if attrs.has(type(value)):
        return [[field.name, _told(getattr(value, field.name))] for field in attrs.fields(type(value))]
    return [_told(vars(value))] if hasattr(value, "__dict__") else []


def _name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def _source(kind: Any) -> str:
    """Return the text of what does not ship; what ships is known by its name."""
    if str(getattr(kind, "__module__", "")).partition(".")[0] in ("agent", "bp", "constitution", "builtins"):
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


FORMAT = 1


class SidecarError(LogError):
    """A sidecar cannot be read or written, or is of another log; the message names the file and the cure."""


def _is_a_score(_: object, __: "Attribute[float | None]", value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"a score is a number from 0 to 1, not {value!r}")


@frozen
class KeptScore:
    """A monitor's score of a call in an answer of the log; value None: the monitor's answer could not be read."""

    by: str
    identity: str
    line: int
    call: str
    value: float | None = field(validator=_is_a_score)
    rationale: str = ""
    usage: Usage = field(default=Usage(), eq=False)

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the subject that the fact is about."""
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
    def key(self) -> tuple[object, ...]:
        """The key of the subject that the fact is about."""
        return ("audit", self.by, self.identity)


@frozen
class KeptPass:
    """A monitor has scored all calls of the log, so many; without this, some may be missing."""

    by: str
    identity: str
    calls: int

    @property
    def key(self) -> tuple[object, ...]:
        """The key of the subject that the fact is about."""
        return ("all", self.by, self.identity)


Kept = KeptScore | KeptAudit | KeptPass
SAID: dict[str, type[Kept]] = {"score": KeptScore, "all": KeptPass, "audit": KeptAudit}


def sidecar_path(log: Path) -> Path:
    """Return where the sidecar of a log is. Its name does not end as those of logs do, so nothing takes it for one."""
    return log.with_name(f"{log.name}.sidecar")


class Sidecar:
    """The known facts about one content of one log. `facts`: by their keys, in the order in which they came."""

    def __init__(self, log: Path, digest: str) -> None:
        """Read the sidecar of a log with this digest; there need not be one yet. Raises SidecarError."""
        self.path, self._log, self._digest = sidecar_path(log), log, digest
        self.facts: dict[tuple[object, ...], Kept] = {}
        try:
            lines = whole_lines(self.path)
        except OSError as error:
            raise SidecarError(f"cannot read the sidecar {self.path}: {error.strerror}") from error
        self._is_new = not lines
        for number, line in enumerate(lines, start=1):
            parsed = _parsed(self.path, number, line)
            if number == 1 or "sidecar" in parsed:  # two who began it at once have both written a header
                self._check_header(parsed)
            else:
                kept = _kept(self.path, number, parsed)
                self.facts.setdefault(kept.key, kept)

    def add(self, kept: Kept) -> None:
        """Write down a fact, unless it is known. Raises SidecarError when the disk does not take it."""
        if kept.key in self.facts:
            return
        try:
            if self._is_new:
                append_line(self.path, json.dumps({"sidecar": FORMAT, "log": self._log.name, "digest": self._digest}))
                self._is_new = False
            append_line(self.path, json.dumps({"said": kept.key[0], **asdict(kept)}))
        except OSError as error:
            told = f"cannot write the sidecar {self.path}: {error.strerror}"
            raise SidecarError(f"{told}; what is in it is kept, run it again later") from error
        self.facts[kept.key] = kept

    def scores(self, by: str | None = None) -> tuple[KeptScore, ...]:
        """Return the scores, of this monitor alone if it is named, in the order of the calls."""
        found = (kept for kept in self.facts.values() if isinstance(kept, KeptScore) and by in (None, kept.by))
        return tuple(sorted(found, key=_line_of))

    def passes(self, by: str) -> tuple[KeptPass, ...]:
        """Return what this monitor has scored completely, one for each identity that it had."""
        return tuple(kept for kept in self.facts.values() if isinstance(kept, KeptPass) and kept.by == by)

    def audits(self) -> tuple[KeptAudit, ...]:
        """Return the audits."""
        return tuple(kept for kept in self.facts.values() if isinstance(kept, KeptAudit))

    def _check_header(self, header: Mapping[str, Any]) -> None:
        version, digest = header.get("sidecar"), header.get("digest")
        if not isinstance(version, int) or not isinstance(digest, str):
            raise SidecarError(f"{self.path}, line 1: this is no header of a sidecar; remove the file, and score again")
        if version > FORMAT:
            told = f"{self.path} has format {version}, this program reads up to {FORMAT}"
            raise SidecarError(f"{told}; use a newer bpagent")
        if digest != self._digest:
            raise SidecarError(
                f"{self.path} is about another content of {self._log}: the log has changed since it was scored "
                f"(digest {digest[:8]} then, {self._digest[:8]} now); remove the sidecar, and score again"
            )


def _line_of(kept: KeptScore) -> int:
    return kept.line


def _parsed(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SidecarError(f"{path}, line {number}: this is not JSON ({error}); remove the line") from error
    if not isinstance(parsed, dict):
        raise SidecarError(f"{path}, line {number}: expected a JSON object, found {type(parsed).__name__}")
    return parsed


def _kept(path: Path, number: int, told: Mapping[str, Any]) -> Kept:
    fields = {name: value for name, value in told.items() if name != "said"}
    try:
        said = told.get("said")
        if not isinstance(said, str) or said not in SAID:
            raise ValueError(f"nothing is known of {said!r}")
        return structured(fields, SAID[said], said)
    except ValueError as error:
        raise SidecarError(f"{path}, line {number}: no score and no audit ({error}); remove the line") from error


def read_sidecar(log: Path) -> Sidecar:
    """Return what is known of a log. Raises LogError when there is no such log, SidecarError when that has changed."""
    try:
        return Sidecar(log, digest_of(log))
    except OSError as error:
        raise LogError(f"cannot read the log {log}: {error.strerror}") from error


def scores_of(logs: Iterable[Path], monitor: str, identity: str | None = None) -> dict[Path, tuple[KeptScore, ...]]:
    """Return the scores that a monitor gave to the calls of each log; of this identity, where it has had several.

    Raises SidecarError for a log that it has not scored completely, or with several identities and none is chosen.
    """
    return {log: _scores(log, monitor, identity) for log in logs}


def highest_scores(logs: Iterable[Path], monitor: str, identity: str | None = None) -> dict[Path, float | None]:
    """Return the highest score of each log, 0 without a call; None where one is missing: the most suspicious."""
    return {log: _highest(scores) for log, scores in scores_of(logs, monitor, identity).items()}


def said_afterwards(log: Path) -> tuple[tuple[str, str], ...]:
    """Return who said what of a log, in words: each monitor's highest score, each auditor's verdict.

    Raises LogError and SidecarError like `read_sidecar`.
    """
    sidecar = read_sidecar(log)
    monitors = dict.fromkeys((kept.by, kept.identity) for kept in sidecar.scores())
    told = [(by, _told_of([kept for kept in sidecar.scores(by) if kept.identity == which])) for by, which in monitors]
    return (*told, *((kept.by, f"{kept.verdict}: {kept.rationale}".rstrip(": ")) for kept in sidecar.audits()))


def _told_of(scores: Sequence[KeptScore]) -> str:
    highest = max(scores, key=lambda kept: suspicion(kept.value))
    value = "no legible score" if highest.value is None else f"{highest.value:.2f} at most"
    return f"{value} ({highest.call}, of {len(scores)})"


def _scores(log: Path, monitor: str, identity: str | None) -> tuple[KeptScore, ...]:
    sidecar = read_sidecar(log)
    passes = [kept.identity for kept in sidecar.passes(monitor) if identity in (None, kept.identity)]
    if not passes:
        command = f"bpagent score {log} --monitor {monitor}=..."
        raise SidecarError(f"{log} was not scored by {monitor!r}, or not completely; run {command}")
    if len(passes) > 1:
        raise SidecarError(f"{log} was scored by several monitors named {monitor!r}: choose one of {', '.join(passes)}")
    return tuple(kept for kept in sidecar.scores(monitor) if kept.identity == passes[0])


def _highest(scores: Iterable[KeptScore]) -> float | None:
    values = [kept.value for kept in scores]
    return None if None in values else max((value or 0.0 for value in values), default=0.0)
