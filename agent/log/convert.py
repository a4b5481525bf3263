"""Logs of format 1 as logs of format 2, beside the old ones, which stay as they are.

In format 1 the parts of a result were fields of `tool_finished` and `call_answered`, and of the tool messages of a
history; in format 2 they are one object, and both records of a call that ran hold the same one. Facts about other
names of files, folders and packages are left out, since no rule reads them any more.

The new log has a chain of its own, and its header names the content of the old one. A signature holds for one place
in one log, so a yes that was signed with the key of this user is signed again. Any other yes stays unsigned, and
permits nothing. A changed log is refused: a new chain would hide the change.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.writing import LogWriter
from agent.vocabulary.encoding import FORMAT

Data = Mapping[str, Any]

OLD = 1


def convert(path: Path) -> Path | None:
    """Write the log of format 1 at `path` as one of format 2, and return its path: `run.jsonl` gives `run-2.jsonl`.

    Return None if it has format 2, or was converted before. A torn last line is left out. Raises LogError for a log
    that is invalid or was changed, and if the new one cannot be written.
    """
    converted = path.with_name(f"{path.stem}-{FORMAT}{path.suffix}")
    recorded = read_log(path, OLD)
    if recorded.header["format"] == FORMAT or converted.exists():
        return None
    if changed := recorded.misfit or recorded.cut:
        raise LogError(f"{changed}; a changed log is not converted")
    try:
        header, records = _header(recorded), list(_records(recorded))
    except (KeyError, TypeError) as error:
        raise LogError(f"{path}: this is no log of format {OLD} ({error!r}); it was changed or damaged") from error
    writer = LogWriter(converted, header)
    try:
        for place, record in enumerate(records):
            writer.record(record, signed=place not in recorded.unsigned)
        writer.flush()
    except BaseException:
        converted.unlink()
        raise
    finally:
        writer.close()
    return converted


def _header(recorded: RecordedRun) -> Data:
    """Return the header of the new log. The presets of the first logs had no option for snapshots."""
    return {
        **recorded.header,
        "format": FORMAT,
        "configuration": {"snapshots": None, **recorded.header["configuration"]},
        "converted": {"format": OLD, "sha256": sha256(recorded.path.read_bytes()).hexdigest()},
    }


def _records(recorded: RecordedRun) -> Iterator[Data]:
    """Yield the records of the new log."""
    finished: dict[str, Data] = {}
    for record in recorded.records:
        data = record["data"]
        match record["name"]:
            case "tool_finished":
                data = _with_result(data, "result")
                finished[data["call"]] = data["result"]
            case "call_answered":
                data = _with_result(data, "result")
                if data["outcome"] == "ran":
                    data = {**data, "result": finished.pop(data["call"], data["result"])}
            case "history_given":
                data = {"messages": [*map(_message, data["messages"])]}
        yield {**record, "data": {name: _facts(value) if name in FACTS else value for name, value in data.items()}}


FACTS = ("facts", "judged")
"""Fields of events that hold the facts of a call."""


def _facts(facts: Data) -> Data:
    return {name: value for name, value in facts.items() if name != "disk"}


def _message(message: Data) -> Data:
    return _with_result(message, "text") if message["role"] == "tool" else message


RARE = ("images", "details", "duration")
"""Fields of a result that a record leaves out when they are empty."""


def _with_result(data: Data, text: str) -> Data:
    """Return data with one object in the place of the fields of a result; `text` is the field with its text."""
    result = {"text": data[text], "is_error": data["is_error"], **{name: data[name] for name in RARE if data.get(name)}}
    others = {name: value for name, value in data.items() if name not in (text, "is_error", *RARE)}
    return {**others, "result": result}
