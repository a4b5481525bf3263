"""Reading a log back, strictly: every line must be right, except that the last one may be torn."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from agent.vocabulary.encoding import FORMAT
from agent.vocabulary.errors import AgentError

FIELDS = {"step": int, "super_step": int, "name": str, "data": dict, "origin": str}
"""What every record has, and of which type."""


class LogError(AgentError):
    """A log cannot be written or read; the message names the file, the line and the cure."""


@frozen
class RecordedRun:
    """A log as it was read. `torn` is true when its last line was cut off and left out."""

    path: Path
    header: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]
    torn: bool


def read_log(path: str | os.PathLike[str]) -> RecordedRun:
    """Read a log. Raises LogError, naming the line, for anything but a torn last line."""
    path = Path(path)
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror}") from error
    is_whole = lines[-1] == b""  # only a line without its end can have been cut off
    if is_whole:
        lines.pop()
    if not lines:
        raise LogError(f"the log {path} is empty; it must begin with a header")
    header = _parsed(path, 1, lines[0])
    _check_header(path, header)
    records, torn = [], False
    for number, line in enumerate(lines[1:], start=2):
        try:
            records.append(_checked(path, number, _parsed(path, number, line)))
        except LogError:
            if is_whole or number < len(lines):
                raise
            torn = True
    return RecordedRun(path, header, tuple(records), torn)


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
