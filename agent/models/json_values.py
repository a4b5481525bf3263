"""Reading JSON whose shape nobody guarantees: what is missing or of another type says nothing."""

import json
from collections.abc import Mapping
from typing import Any

from agent.vocabulary.messages import Usage

__all__ = ["argument_text", "elements", "error_text", "index_number", "mapping", "text", "usage"]


def mapping(value: object) -> Mapping[str, Any] | None:
    """Return a JSON object, also one in the form of the openai package; None for anything else."""
    if type(value) is dict:  # nearly always; asking for an abstract class costs ten times as much
        return value
    if isinstance(value, Mapping):
        return value
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else None


def elements(value: object) -> list[Any]:
    """Return a list; a single value as a list of one."""
    if isinstance(value, list):
        return value
    return [value] if value else []


def text(value: object) -> str:
    """Return a text, or ""."""
    return value if isinstance(value, str) else ""


def argument_text(value: object) -> str:
    """Return the text of arguments; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def index_number(value: object) -> int | None:
    """Return a position, also one that is written as text; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def usage(value: object) -> Usage | None:
    """Return the tokens that were counted, under the names of either format; None when nothing was."""
    counts = mapping(value)
    if not counts:
        return None
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens", counts.get("input_tokens"))),
        output_tokens=_count(counts.get("completion_tokens", counts.get("output_tokens"))),
    )


def error_text(error: object) -> str:
    """Return what an error says: its message, else all of it; at most 300 characters."""
    message = (mapping(error) or {}).get("message") or error
    return f"{message}"[:300]


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0
