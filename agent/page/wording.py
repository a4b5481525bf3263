"""The wording of events for users: one table for the terminal and the page of a run.

A record, or the fields of an event, becomes a label and texts. `agent.vocabulary.reasons` has the texts for models.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from attrs import fields

from agent.effects.loop import LONGEST_ASKED, longest_before
from agent.vocabulary.calls import ToolCall, background_mark
from agent.vocabulary.encoding import plain
from agent.vocabulary.events import BackoffStarted
from agent.vocabulary.messages import one_line
from bp import Event

LONGEST_LINE = 160  # characters of a line
LONGEST_ARGUMENT = 60  # characters

SHELLS = ("bash", "run_command", "terminal")
"""Tools whose calls are shown as the command alone (S1 6.3)."""

Data = Mapping[str, Any]


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: "1 message", "2,000 messages"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lasted(milliseconds: float) -> str:
    """Return a duration in words: `340 ms`, `8.1 s`, `2 min 5 s`."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


# Calls.


def command_of(call: ToolCall) -> str:
    """Return a whole call as text: a shell command as proposed, else the tool with its arguments."""
    command = shell_command(call)
    if command is not None:
        return command
    return _with_arguments(call, call.arguments, lambda value: json.dumps(value, ensure_ascii=False))


def action_of(call: ToolCall) -> str:
    """Return one line that shows a call: a shell command as proposed, the file that would change, or the arguments."""
    command = shell_command(call)
    if command is not None:
        return command + background_mark(call.arguments)
    match call.arguments:
        case {"path": str(path), "content": str(content), **others} if not others:
            return f"{call.tool} {path} ({counted(len(content), 'character')})"
        case {"path": str(path), "oldText": str(), "newText": str(), **others} if not others:
            return f"{call.tool} {path}"
    return _with_arguments(call, call.arguments, _abbreviated)


def shell_command(call: ToolCall) -> str | None:
    """Return the command that a call has a shell run; None for other calls."""
    name = call.command_in or ("command" if call.tool in SHELLS else "")
    command = call.arguments.get(name)
    return command if isinstance(command, str) else None


def recorded_call(call: Data) -> ToolCall:
    """Return the call of a record, with the fields that it has."""
    known = {name: call[name] for name in ("command_in",) if name in call}
    return ToolCall(str(call.get("id")), str(call.get("tool")), call.get("arguments") or {}, **known)


def _with_arguments(call: ToolCall, arguments: Data, shown: Callable[[object], str]) -> str:
    """Return a tool with its arguments; a short text as the only argument is shown alone."""
    match [*arguments.items()]:
        case [(_, str(text))] if text and len(text) < LONGEST_ARGUMENT:
            return f"{call.tool} {text}"
        case pairs:
            return " ".join([call.tool, *(f"{name}={shown(plain(value))}" for name, value in pairs)])


def _abbreviated(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < LONGEST_ARGUMENT else f"({len(value if isinstance(value, str) else text)} characters)"


# Refusals.

WAITING = {"": "the model has not been shown yet what a person said", "at_once": "a follow-up waits"}
"""The reasons of steering and follow-ups, by the one field that they have, or lack."""


def reason_of(because: Any) -> str:
    """Return the reason of a refusal in words: a verdict, an ending, a text, or whatever a protocol gave."""
    if isinstance(because, str):
        return because
    data = because if isinstance(because, Mapping) else plain(because)
    if not isinstance(data, Mapping):
        return str(because)
    if isinstance(data.get("verdict"), Mapping):
        told = f" ({data['text']})" if data.get("text") else ""
        said = "no person present" if data.get("present") is False else f"the user said no{told}"
        return f"{said}: {reason_of(data['verdict'])}"
    if not data.keys() - WAITING.keys():
        return WAITING[next(iter(data), "")]
    words = [data.get(name) for name in ("explanation", "text", "reason") if data.get(name)]
    rule = f" (rule {data['rule']})" if data.get("rule") else ""
    return f"{words[0]}{rule}" if words else str(because if data is not because else json.dumps(data))


def refused_by(refusals: Iterable[Any]) -> list[str]:
    """Return a line for each b-thread that refused: its name and reason. `refusals`: of an event, or of a record."""
    pairs = ((each["bthread"], each["because"]) if isinstance(each, Mapping) else each for each in refusals)
    return sorted(f"b-thread {bthread}: {reason_of(because)}" for bthread, because in pairs)


# Events.


class Wording(NamedTuple):
    """The wording of events of one kind: a label, the sort that gives the color, and the texts, from their fields."""

    label: str
    sort: str
    texts: Callable[[Data], Sequence[str]]


def _text(words: str) -> Callable[[Data], Sequence[str]]:
    """Return the function that fills in `words`, in which `{name}` is a field, and adds the user's text, if any."""

    def tell(data: Data) -> Sequence[str]:
        said = f" ({data['text']})" if data.get("text") else ""
        return (words.format(**data) + said,)

    return tell


def _field(name: str) -> Callable[[Data], Sequence[str]]:
    return lambda data: (str(data.get(name) or ""),)


def _refusals(data: Data) -> Sequence[str]:
    return refused_by(data["refusals"])


def _history(data: Data) -> Sequence[str]:
    told = (f"{message['role']}: {_words(message)}" for message in data["messages"])
    return ("\n".join((counted(len(data["messages"]), "earlier message"), *told)),)


def _words(message: Data) -> str:
    calls = (f"{call['name']} {call['arguments']}" for call in message.get("calls") or ())
    return "\n".join(part for part in (message.get("result", message).get("text", ""), *calls) if part)


def _found(data: Data) -> Sequence[str]:
    found = counted(len(data["texts"]), "message")
    return (f"a hook has {found} for {str(data['what']).replace('_', '-')}",) if data["texts"] else ()


def _unkept(data: Data) -> Sequence[str]:
    """Return what is no part of a snapshot, and what else is to be known about it."""
    again, unkept = (", ".join(data.get(name) or ()) for name in ("made_again", "unkept"))
    texts = (again and f"left out, since it can be made again: {again}", unkept and f"not kept: {unkept}")
    return [text for text in (*texts, *(data.get("told") or ())) if text]


def _decision(data: Data) -> Sequence[str]:
    if data["yes"]:
        return ("approved",)
    if not data.get("present", True):
        return ("not approved: no user is present to ask",)
    return (f"not approved: {data.get('text') or 'the answer was no'}",)


def _next_attempt(data: Data) -> Sequence[str]:
    """Return which attempt follows a failed one, of how many (where that is known), and when."""
    backoff = BackoffStarted(data["attempt"], data.get("retry_after"))
    seconds, of = longest_before(backoff), f" of {data['attempts']}" if data.get("attempts") else ""
    if backoff.retry_after is None:
        bound = " at most"
    else:
        bound = ", the most that is waited" if seconds == LONGEST_ASKED else ""
    return (f"attempt {backoff.attempt + 1}{of} follows in {seconds:g} s{bound}",)


WORDING: Mapping[str, Wording] = {
    "history_given": Wording("history", "system", _history),
    "prompt_given": Wording("prompt", "person", _field("text")),
    "steering_given": Wording("steering", "person", _field("text")),
    "follow_up_given": Wording("follow-up", "person", _field("text")),
    "messages_found": Wording("heard", "system", _found),
    "stop_asked": Wording("stop", "person", _text("what runs finishes, then the run ends; another stop ends it now")),
    "abort_asked": Wording("abort", "person", _text("everything ends now")),
    "deadline_reached": Wording(
        "time", "system", _text("the time limit of {seconds:g} seconds was reached: everything ends now")
    ),
    "summary_requested": Wording(
        "summary", "system", _text("the conversation has grown long: its older part is summarized")
    ),
    "summary_finished": Wording("summary", "reasoning", _field("text")),
    "summary_failed": Wording("summary", "system error", _text("none could be made: {error}")),
    "approval_asked": Wording("question", "question", _field("question")),
    "approval_answered": Wording("answer", "question", _decision),
    "action_changed": Wording(
        "changed", "system", lambda data: (f"since the question was put: {'; '.join(data['changes'])}",)
    ),
    "snapshot_taken": Wording("snapshot", "system", _unkept),
    "snapshot_failed": Wording("snapshot", "system error", _text("none could be taken: {error}")),
    "sandbox_lifted": Wording(
        "sandbox", "system", lambda data: (f"lifted for this call: {', '.join(data['rights'])}",)
    ),
    "gate_rejected": Wording("refused", "refused", _refusals),
    "drafts_refused": Wording("refused", "refused", _refusals),
    "run_continued": Wording("goes on", "system", _refusals),
    "inference_failed": Wording("model", "system error", _field("error")),
    "backoff_started": Wording("retry", "system", _next_attempt),
    "completion_declared": Wording("complete", "system", _field("status")),
}
"""The wording of events, by kind; answers, calls, results and ends have functions, other kinds show their name."""


def told(event: Event, **more: Any) -> tuple[str, str, Sequence[str]]:
    """Return label, sort and texts of an event whose kind is in the table; `more`: values in addition to its fields."""
    label, sort, texts = WORDING[event.name]
    kind: Any = type(event)
    return label, sort, texts({each.name: getattr(event, each.name) for each in fields(kind)} | more)


OUTCOMES = {"ran": "result", "rejected": "told", "skipped": "skipped"}


def answered(outcome: str, result: str) -> tuple[str, str]:
    """Return label and text of the answer to a call; `told` is the text for the model, shown after that for users."""
    label = OUTCOMES.get(outcome, "refused")
    return label, result.removeprefix("skipped: ") if label == "skipped" else result


def ending(data: Data) -> str:
    """Return the status and the reason of an end: `limit (max_iterations)`."""
    return f"{data['status']} ({data['reason']})"


# Rows of lanes.

SECONDS = ("deadline_set", "deadline_reached", "backoff_elapsed")


def summary_of(record: Data) -> str:
    """Return a line that identifies a record among others of its kind: its call, its status, or its text.

    The b-threads that refused the event requested first are named, too.
    """
    refusers = dict.fromkeys(refusal["bthread"] for refusal in record.get("refusals") or ())
    by = f"✕ {', '.join(refusers)}" if refusers else ""
    return one_line(f"{_own_summary(record)} {by}", LONGEST_LINE)


def _own_summary(record: Data) -> str:
    data = record["data"]
    call = data.get("call")
    if isinstance(call, Mapping):
        return f"{call['id']} {one_line(action_of(recorded_call(call)), LONGEST_LINE)}"
    if record["name"] in SECONDS:
        return f"{data.get('seconds')} seconds"
    for name in ("call", "status", "draft", "what", "text", "error"):
        if isinstance(data.get(name), str) and data[name]:
            return one_line(data[name], LONGEST_LINE)
    return ""
