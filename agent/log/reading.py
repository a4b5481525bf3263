"""Strict reading of a log: every line must be valid, except that the last one may be torn; and records back to events.

A replay needs only the events that came from outside, since the program requests all others again.
"""

import json
import os
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, fields, frozen

from agent.log.chain import CHAIN, SIGNATURE, end_of, own_key, signature, wants_signature
from agent.vocabulary import events, questions
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import FORMAT, ROLES, problems_of, strict_converter
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import ProposedAction
from agent.vocabulary.messages import Message
from bp import Event, Refusal, Refusals, Step, freeze
from constitution.action import Action, Facts

if TYPE_CHECKING:
    from cattrs import Converter


class LogError(AgentError):
    """A log cannot be written or read; the message names the file, the line and the cure."""


class OldFormat(LogError):
    """The log has an earlier format."""


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


def read_log(path: str | os.PathLike[str], oldest: int = FORMAT) -> RecordedRun:
    """Read a log, of the format `oldest` or a later one. Raises LogError, naming the line, for anything but a torn
    last line.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            first = file.readline()
            header = header_of(path, first, oldest)
            seed = header.get(CHAIN)
            end = end_of(path, seed) if isinstance(seed, str) else None  # before the lines: a writer may append more
            lines = (first + file.read()).split(b"\n")
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror}") from error
    is_whole = lines[-1] == b""  # only a line without its end can have been cut off
    if is_whole:
        lines.pop()
    chain = _Chain(path, sha256(lines[0]).hexdigest() if CHAIN in header else "", end)
    chain.compare(1)
    records, torn = [], False
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = _record(path, number, line)
        except LogError:
            if is_whole or number < len(lines):
                raise
            torn = True
        else:
            chain.follow(number, line, record)
            records.append(record)
    cut = chain.missing_after(len(records) + 1 + torn)
    return RecordedRun(path, header, tuple(records), torn, chain.link, chain.misfit, cut, tuple(chain.unsigned))


@define
class _Chain:
    """Follows the chain of a log, line by line. link: the hash of the last line. end: number and hash as recorded."""

    path: Path
    link: str
    end: tuple[int, str] | None
    misfit: str = ""
    unsigned: list[int] = field(factory=list)
    key: bytes | None = field(factory=own_key)

    def follow(self, number: int, line: bytes, record: dict[str, Any]) -> None:
        """Check the hash and the signature in the record of a line, and take them out of it."""
        link, signed = _released(record)
        if self.link:
            if link != self.link:
                what = f"line {number} (step {record['step']}, {record['name']})"
                self._misfits(f"{what} does not follow the line before it; the log was changed there")
            self.link = sha256(line).hexdigest()
            self.compare(number)
        if wants_signature(record) and (self.key is None or signed != signature(self.key, link, record)):
            self.unsigned.append(number - 2)

    def compare(self, number: int) -> None:
        """Compare a line with the recorded last one."""
        if self.end is not None and self.end[0] == number and self.end[1] != self.link:
            self._misfits(f"line {number} is not as it was written; the log was changed there")

    def missing_after(self, lines: int) -> str:
        """Describe the lines that are missing at the end of the log; a killed process loses none that it wrote."""
        if not self.link or self.end is None or lines >= self.end[0]:
            return ""
        return f"{self.path}: line {lines + 1} and what followed are missing, {self.end[0] - lines} in all"

    def _misfits(self, why: str) -> None:
        self.misfit = self.misfit or f"{self.path}: {why}"


def record_of(line: bytes) -> dict[str, Any]:
    """Return the record of a line that was checked before, or is being written; it is not checked."""
    record: dict[str, Any] = json.loads(line)
    _released(record)
    return record


def _released(record: dict[str, Any]) -> tuple[str, str]:
    """Remove the hash of the line before and the signature from a record."""
    return record.pop(CHAIN, ""), record.pop(SIGNATURE, "")


def header_of(path: Path, line: bytes, oldest: int = FORMAT) -> dict[str, Any]:
    """Return the header in the first line of a log. Raises LogError."""
    if not line:
        raise LogError(f"the log {path} is empty; it must begin with a header")
    header = _object(path, 1, line)
    found = header.get("format")
    if "name" in header or not isinstance(found, int):
        raise LogError(f"{path}, line 1: this is no header of a bpagent log; name a file that a run wrote")
    if found > FORMAT:
        raise LogError(f"{path}: the log has format {found}, this program reads {FORMAT}; use a newer bpagent")
    if found < oldest:
        cure = f"`bpagent convert {path}` writes one of that format beside it"
        raise OldFormat(f"{path}: the log has format {found}, this program reads {FORMAT}; {cure}")
    return header


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    record = _object(path, number, line)
    kinds = {"step": int, "super_step": int, "name": str, "data": dict, "origin": str}
    if missing := [name for name, kind in kinds.items() if not isinstance(record.get(name), kind)]:
        raise LogError(f"{path}, line {number}: the record has no {', '.join(missing)}; the log was changed or damaged")
    return record


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{path}, line {number}: this is not JSON ({error}); the log was changed or damaged") from error
    if not isinstance(parsed, dict):
        raise LogError(f"{path}, line {number}: expected a JSON object, found {type(parsed).__name__}")
    return parsed


# Records back to events


class Decoder:
    """Reads the records of one log in order; remembers the calls, which later records name by id."""

    def __init__(self) -> None:
        """Make a decoder that knows no call yet."""
        self._calls: dict[str, ToolCall] = {}

    def learn(self, record: Mapping[str, Any]) -> None:
        """Remember the call of a `proposed_action`. Raises LogError."""
        if record["name"] == "proposed_action":
            call = _structured(record, record["data"], ProposedAction).call
            self._calls[call.id] = call

    def event(self, record: Mapping[str, Any]) -> Event:
        """Return the event of a record. Raises LogError for a kind or data that this program does not know."""
        kind = recorded_kinds().get(record["name"])
        if kind is None:
            raise LogError(
                f"step {record['step']}: the event kind {record['name']!r} is not known here; use a newer bpagent"
            )
        data = record["data"]
        has_call = any(field.name == "call" and field.type is ToolCall for field in fields(kind))
        if has_call and isinstance(data, dict) and isinstance(data.get("call"), str):
            if data["call"] not in self._calls:
                raise LogError(
                    f"step {record['step']}: the call {data['call']!r} was never proposed; "
                    "the log was changed or damaged"
                )
            data = {**data, "call": self._calls[data["call"]]}
        return _structured(record, data, kind)  # type: ignore[no-any-return]


def recorded_steps(run: RecordedRun) -> tuple[Step, ...]:
    """Return the steps of a log, without its program; the `because` of a refusal as text, or as the fields of a value.

    Raises LogError for a kind of event that does not ship.
    """
    decoder, steps = Decoder(), list[Step]()
    for record in run.records:
        decoder.learn(record)
        by = None if record["origin"] == "outside" else record["origin"]
        answered = _refusals(record["refusals"]) if "refusals" in record else None
        steps.append(Step(record["step"], decoder.event(record), record["super_step"], by, answered))
    return tuple(steps)


@cache
def recorded_kinds() -> dict[str, Any]:
    """Return every kind of event that ships, by its name in the log."""
    kinds = (kind for module in (events, questions) for kind in vars(module).values() if isinstance(kind, type(Event)))
    return {kind.name: kind for kind in kinds if kind is not Event}


def _structured(record: Mapping[str, Any], data: Any, kind: Any) -> Any:
    try:
        return _converter().structure(data, kind)
    except Exception as error:
        problems = "; ".join(problems_of(error, record["name"]))
        raise LogError(f"step {record['step']}: {problems}") from error


LEFT_OUT = "disk"
"""A field of actions in logs of earlier versions, which no rule reads any more."""


@cache
def _converter() -> "Converter":
    from cattrs.gen import make_dict_structure_fn  # slow, and needed only here

    converter = strict_converter()

    def whole(kind: Any) -> Callable[[Any, Any], Any]:
        return make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)

    def message(kind: type) -> Callable[[Any, Any], Any]:  # its role says nothing new
        structure = whole(kind)
        return lambda data, _: structure({name: value for name, value in dict(data).items() if name != "role"}, kind)

    register = converter.register_structure_hook
    register(bytes, lambda text, _: b64decode(text, validate=True))
    register(Refusals, lambda told, _: _refusals(told))
    register(Facts, lambda data, _: Facts(data))
    converter.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], lambda data, _: freeze(data))
    for kind in ROLES:
        register(kind, message(kind))
    converter.register_structure_hook_func(lambda kind: kind == Message, lambda data, _: _message(converter, data))
    whole_action = whole(Action)
    register(Action, lambda data, kind: whole_action({name: data[name] for name in data if name != LEFT_OUT}, kind))
    whole_call = whole(ToolCall)
    register(ToolCall, lambda data, kind: data if isinstance(data, ToolCall) else whole_call(data, kind))
    return converter


def _refusals(told: Any) -> Refusals:
    return Refusals(Refusal(each["bthread"], freeze(each["because"])) for each in told)


def _message(converter: "Converter", data: Any) -> Any:
    kind = next((kind for kind, role in ROLES.items() if isinstance(data, dict) and data.get("role") == role), None)
    if kind is None:
        raise ValueError(f"expected a message with a role, found {data!r}")
    return converter.structure(data, kind)
