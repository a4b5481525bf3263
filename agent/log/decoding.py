"""Records back to events: for a replay those that came from outside, since the program requests all others again."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import cattrs
from attrs import fields
from cattrs.gen import make_dict_structure_fn

from agent.log.reading import LogError, RecordedRun
from agent.vocabulary import events, questions
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.conversion import problems_of, strict_converter
from agent.vocabulary.encoding import ROLES
from agent.vocabulary.events import ProposedAction
from agent.vocabulary.messages import Message
from bp import Event, Refusal, Refusals, Step, freeze
from constitution.action import Facts


def kinds_in(vocabulary: ModuleType) -> dict[str, Any]:
    """Return every kind of a vocabulary, by its name in the log."""
    defined = (kind for kind in vars(vocabulary).values() if isinstance(kind, type) and issubclass(kind, Event))
    return {kind.name: kind for kind in defined if kind is not Event}


KINDS = kinds_in(events) | kinds_in(questions)

WITH_A_CALL = frozenset(
    name
    for name, kind in KINDS.items()
    if any(field.name == "call" and field.type is ToolCall for field in fields(kind))
)  # whose records have the call as its id


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
        kind = KINDS.get(record["name"])
        if kind is None:
            raise LogError(
                f"step {record['step']}: the event kind {record['name']!r} is not known here; use a newer bpagent"
            )
        return _structured(record, self._with_call(record), kind)  # type: ignore[no-any-return]

    def _with_call(self, record: Mapping[str, Any]) -> Any:
        """Return the data of a record with its call instead of the id of it, where its kind carries a whole call."""
        data = record["data"]
        if not isinstance(data, dict) or record["name"] not in WITH_A_CALL or not isinstance(data.get("call"), str):
            return data
        if data["call"] not in self._calls:
            raise LogError(
                f"step {record['step']}: the call {data['call']!r} was never proposed; the log was changed or damaged"
            )
        return {**data, "call": self._calls[data["call"]]}


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


def _refusals(told: Any, _: object = None) -> Refusals:
    return Refusals(Refusal(each["bthread"], freeze(each["because"])) for each in told)


def _structured(record: Mapping[str, Any], data: Any, kind: Any) -> Any:
    try:
        return _converter().structure(data, kind)
    except Exception as error:
        problems = "; ".join(problems_of(error, record["name"]))
        raise LogError(f"step {record['step']}: {problems}") from error


@cache
def _converter() -> cattrs.Converter:
    converter = strict_converter()
    converter.register_structure_hook(bytes, lambda text, _: b64decode(text, validate=True))
    converter.register_structure_hook(Refusals, _refusals)
    converter.register_structure_hook(Facts, lambda data, _: Facts(data))
    converter.register_structure_hook_func(lambda kind: kind == Mapping[str, Any], lambda data, _: freeze(data))
    for kind in ROLES:
        converter.register_structure_hook(kind, _without_role(kind, converter))
    converter.register_structure_hook_func(lambda kind: kind == Message, lambda data, _: _message(converter, data))
    whole_call = make_dict_structure_fn(ToolCall, converter, _cattrs_forbid_extra_keys=True)
    converter.register_structure_hook(
        ToolCall, lambda data, kind: data if isinstance(data, ToolCall) else whole_call(data, kind)
    )
    return converter


def _without_role(kind: type, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """Read a message of one kind; its role says nothing new."""
    structure: Callable[[Any, Any], Any] = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)
    return lambda data, _: structure({name: value for name, value in dict(data).items() if name != "role"}, kind)


def _message(converter: cattrs.Converter, data: Any) -> Any:
    kind = next((kind for kind, role in ROLES.items() if isinstance(data, dict) and data.get("role") == role), None)
    if kind is None:
        raise ValueError(f"expected a message with a role, found {data!r}")
    return converter.structure(data, kind)
