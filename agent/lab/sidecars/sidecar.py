"""Sidecar logs: scores and audits of finished runs, beside the log, since `run_ended` stays last in it.

The first line names the log and the digest of its content; each other line is a fact, and says which monitor or auditor
said so: its name, and a digest of what it was made with, such as its prompt.
"""

import inspect
import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import attrs
from attrs import Attribute, asdict, field, frozen

from agent.lab.json_lines import append_line, whole_lines
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


FORMAT = 2
"""1 had lines besides, which said that a monitor had scored everything."""


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


SAID: dict[str, type[KeptScore | KeptAudit]] = {"score": KeptScore, "audit": KeptAudit}


def sidecar_path(log: Path) -> Path:
    """Return where the sidecar of a log is. Its name does not end as those of logs do, so nothing takes it for one."""
    return log.with_name(f"{log.name}.sidecar")


class Sidecar:
    """The known facts about one content of one log. `facts`: by their keys, in the order in which they came."""

    def __init__(self, log: Path, digest: str) -> None:
        """Read the sidecar of a log with this digest; there need not be one yet. Raises SidecarError."""
        self.path, self._log, self._digest = sidecar_path(log), log, digest
        self.facts: dict[tuple[object, ...], KeptScore | KeptAudit] = {}
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
        return tuple(sorted(found, key=lambda kept: kept.line))

    def audits(self) -> tuple[KeptAudit, ...]:
        """Return the audits."""
        return tuple(kept for kept in self.facts.values() if isinstance(kept, KeptAudit))

    def _read(self, told: Any, number: int) -> None:
        """Take a line into account; two processes that began the file at once have both written a header."""
        match told:
            case {"sidecar": int(version), "digest": str(digest)}:
                self._check_header(version, digest)
            case {"said": "score" | "audit" as said, **fields} if number > 1:
                kept = structured(fields, SAID[said], said)
                self.facts.setdefault(kept.key, kept)
            case _:
                raise ValueError(f"expected {'a score or an audit' if number > 1 else 'the header of a sidecar'}")

    def _check_header(self, version: int, digest: str) -> None:
        if version != FORMAT:
            told = f"{self.path} has format {version}, this program reads {FORMAT}"
            raise SidecarError(f"{told}; remove the sidecar and score again, or use a newer bpagent")
        if digest != self._digest:
            raise SidecarError(
                f"{self.path} is about another content of {self._log}: the log has changed since it was scored "
                f"(digest {digest[:8]} then, {self._digest[:8]} now); remove the sidecar, and score again"
            )


def read_sidecar(log: Path) -> Sidecar:
    """Return what is known of a log. Raises LogError when there is no such log, SidecarError when that has changed."""
    try:
        return Sidecar(log, digest_of(log))
    except OSError as error:
        raise LogError(f"cannot read the log {log}: {error.strerror}") from error
