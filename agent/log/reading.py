"""Strict reading of a log: every line must be valid, except that the last one may be torn."""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from agent.log.chain import CHAIN, SIGNATURE, end_of, own_key, signature, wants_signature
from agent.vocabulary.encoding import FORMAT
from agent.vocabulary.errors import AgentError

FIELDS = {"step": int, "super_step": int, "name": str, "data": dict, "origin": str}
"""The fields of every record, with their types."""


class LogError(AgentError):
    """A log cannot be written or read; the message names the file, the line and the cure."""


@frozen(repr=False)
class RecordedRun:
    """The content of a log. `torn` is true when its last line was cut off and left out.

    `chain` has the hash of the last line, "" for a log that is not chained; `misfit` names the first record that does
    not follow the line before it, or was changed, "" without one. `cut` says which lines are missing at the end.
    `unsigned` has the indexes in `records` of approvals without a signature of this user.
    """

    path: Path
    header: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]
    torn: bool
    chain: str = ""
    misfit: str = ""
    cut: str = ""
    unsigned: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<RecordedRun: {self.path}, {len(self.records)} records>"

    @property
    def integrity(self) -> str:
        """Return the problem of the chain in words; an empty text for an intact chain."""
        unchained = "" if self.chain else f"{self.path} is not chained: nothing tells whether it was changed"
        return self.misfit or self.cut or unchained


def read_log(path: str | os.PathLike[str]) -> RecordedRun:
    """Read a log. Raises LogError, naming the line, for anything but a torn last line."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            first = file.readline()
            end = _end(path, first)  # read before the lines, since a writer may append more
            lines = (first + file.read()).split(b"\n")
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror}") from error
    is_whole = lines[-1] == b""  # only a line without its end can have been cut off
    if is_whole:
        lines.pop()
    if not lines:
        raise LogError(f"the log {path} is empty; it must begin with a header")
    header = _parsed(path, 1, lines[0])
    _check_header(path, header)
    read = _Chain(path, sha256(lines[0]).hexdigest() if CHAIN in header else "", end)
    read.compare(1)
    records, torn = [], False
    for number, line in enumerate(lines[1:], start=2):
        try:
            records.append(read.taken(number, line, _checked(path, number, _parsed(path, number, line))))
        except LogError:
            if is_whole or number < len(lines):
                raise
            torn = True
    cut = read.missing_after(len(records) + 1 + torn)
    return RecordedRun(path, header, tuple(records), torn, read.chain, read.misfit, cut, tuple(read.unsigned))


def _end(path: Path, line: bytes) -> tuple[int, str] | None:
    """Return the recorded end of the log with this header; None where it is unknown."""
    try:
        seed = json.loads(line)[CHAIN]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return end_of(path, seed) if isinstance(seed, str) else None


@define
class _Chain:
    """Follows the chain of a log, line by line."""

    path: Path
    chain: str
    end: tuple[int, str] | None
    misfit: str = ""
    unsigned: list[int] = field(factory=list)
    key: bytes | None = field(factory=own_key)

    def taken(self, number: int, line: bytes, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a line without its hash and signature, which are checked."""
        chain, signed = _released(record)
        if self.chain:
            if chain != self.chain and not self.misfit:
                what = f"line {number} (step {record['step']}, {record['name']})"
                self.misfit = f"{self.path}: {what} does not follow the line before it; the log was changed there"
            self.chain = sha256(line).hexdigest()
            self.compare(number)
        if wants_signature(record) and (self.key is None or signed != signature(self.key, chain, record)):
            self.unsigned.append(number - 2)
        return record

    def missing_after(self, lines: int) -> str:
        """Describe the lines that are missing at the end of the log; a killed process loses none that it wrote."""
        if not self.chain or self.end is None or lines >= self.end[0]:
            return ""
        return f"{self.path}: line {lines + 1} and what followed are missing, {self.end[0] - lines} in all"

    def compare(self, number: int) -> None:
        """Compare a line with the recorded last one."""
        if self.end == (number, self.chain) or self.end is None or self.end[0] != number:
            return
        self.misfit = self.misfit or f"{self.path}: line {number} is not as it was written; the log was changed there"


def record_of(line: bytes) -> dict[str, Any]:
    """Return the record of a line that was checked before, or is being written; it is not checked."""
    record: dict[str, Any] = json.loads(line)
    _released(record)
    return record


def _released(record: dict[str, Any]) -> tuple[str, str]:
    """Remove the hash of the line before and the signature from a record."""
    return record.pop(CHAIN, ""), record.pop(SIGNATURE, "")


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{path}, line {number}: this is not JSON ({error}); the log was changed or damaged") from error
    if not isinstance(parsed, dict):
        raise LogError(f"{path}, line {number}: expected a JSON object, found {type(parsed).__name__}")
    return parsed


def _check_header(path: Path, header: Mapping[str, Any]) -> None:
    version = header.get("format")
    if "name" in header or not isinstance(version, int):
        raise LogError(f"{path}, line 1: this is no header of a bpagent log; name a file that a run wrote")
    if version > FORMAT:
        raise LogError(f"{path}: the log has format {version}, this program reads up to {FORMAT}; use a newer bpagent")


def _checked(path: Path, number: int, record: dict[str, Any]) -> dict[str, Any]:
    missing = [field for field, kind in FIELDS.items() if not isinstance(record.get(field), kind)]
    if missing:
        raise LogError(f"{path}, line {number}: the record has no {', '.join(missing)}; the log was changed or damaged")
    return record
