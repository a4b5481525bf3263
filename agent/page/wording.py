"""The wording of calls, refusals and records on a page."""

import json
from collections.abc import Mapping
from typing import Any

from agent.vocabulary.calls import background_mark
from agent.vocabulary.messages import one_line

LONGEST_ARGUMENT = 160  # characters of a line
WAITING = {"": "the model has not been shown yet what a person said", "at_once": "a follow-up waits"}
"""The reasons of those who speak for people, by the one field that they have, or have not."""

SECONDS = ("deadline_set", "deadline_reached", "backoff_elapsed")


def call_line(call: Mapping[str, Any]) -> str:
    """Return a call in one line: the command of a shell tool, else the tool and its arguments."""
    arguments = call.get("arguments") or {}
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str):
        return one_line(command, LONGEST_ARGUMENT) + background_mark(arguments)
    shown = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in dict(arguments).items())
    return one_line(f"{call.get('tool')} {shown}", LONGEST_ARGUMENT)


def reason_of(because: Any) -> str:
    """Return the reason of a refusal in words: a verdict, an ending, a text, or whatever a protocol gave."""
    if not isinstance(because, Mapping):
        return str(because)
    if isinstance(because.get("verdict"), Mapping):
        told = f" ({because['text']})" if because.get("text") else ""
        said = "no person present" if because.get("present") is False else f"the user said no{told}"
        return f"{said}: {reason_of(because['verdict'])}"
    if not because.keys() - WAITING.keys():
        return WAITING[next(iter(because), "")]
    words = [because.get(name) for name in ("explanation", "text", "reason") if because.get(name)]
    rule = f" (rule {because['rule']})" if because.get("rule") else ""
    return f"{words[0]}{rule}" if words else json.dumps(because, ensure_ascii=False)


def counted(number: int, thing: str) -> str:
    """Return how many there are: "1 message", "2 messages"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def summary_of(record: Mapping[str, Any]) -> str:
    """Return what tells a record from others of its kind: its call, its status, or its text, cut to a line; and who
    refused what was wanted instead.
    """
    refusers = dict.fromkeys(refusal["bthread"] for refusal in record.get("refusals") or ())
    by = f"✕ {', '.join(refusers)}" if refusers else ""
    return one_line(f"{_own_summary(record)} {by}", LONGEST_ARGUMENT)


def _own_summary(record: Mapping[str, Any]) -> str:
    data = record["data"]
    call = data.get("call")
    if isinstance(call, Mapping):
        return f"{call['id']} {call_line(call)}"
    if record["name"] in SECONDS:
        return f"{data.get('seconds')} seconds"
    for name in ("call", "status", "draft", "what", "text", "error"):
        if isinstance(data.get(name), str) and data[name]:
            return one_line(data[name], LONGEST_ARGUMENT)
    return ""
