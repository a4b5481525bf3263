"""The meaning of a server's refusal, by its status, codes and words, and the change that it makes in later requests.

A conversation may be too long; the server could not read a call of its own model; it does not take pictures, or a part
of the request, which the client leaves out from then on.
"""

import re
from collections.abc import Iterable
from typing import Any

from agent.vocabulary.messages import FailureReason

TOO_LARGE = 413  # RFC 9110: the content of the request

OVERFLOW_CODE = re.compile(
    r"context.?(length|window|size).*exceed|exceed.*context|(prompt|input|context|request)_?(is_)?too_?(long|large)"
    r"|tokens?_limit_(reached|exceeded)|max_context_length|context_overflow",
    re.IGNORECASE,
)
"""Codes and types of errors for a conversation that is too long."""

CONVERSATION = re.compile(
    r"context|ctx|prompt|input|messages?\b|conversation|history|request|sequence|max_(model|seq)_len|total"
    r"|tokens? (count|limit)",
    re.IGNORECASE,
)
SIZE = re.compile(r"token|length|\blen\b|long|large|context|ctx|size|window", re.IGNORECASE)
TOO_MUCH = re.compile(
    r"exceed|overflow|too (long|large|big|many)|longer|larger|greater|\bover\b|beyond|maximum|\bmax\b|at most"
    r"|limit|full|only supports|reduce|shorten|less than|(must|should) be",
    re.IGNORECASE,
)
"""The same in words: servers say it in any way, but all name the conversation, its size, and that it is too much."""

ANOTHER_LIMIT = re.compile(
    r"\b(per|a|each) ?(minute|min|second|day|hour|month)\b|\b[tr]p[mdh]\b|rate.?limit|quota|too many requests|credit"
    r"|\bmax\w*_tokens\W+(is |must |value|should |:|cannot |limit |exceed)|(completion|output|new|generated) tokens"
    r"|max\w* tokens (you |requested)|valid range of max|maximum value for|time.?out|timed out|concurrent|queue"
    r"|\b(tools?|functions?|description|schema|names?|call_id|ids?|metadata|stop|characters|images?|files?|batch)\b",
    re.IGNORECASE,
)
"""Words of other limits: of time, of the answer, of one field."""

SURELY = re.compile(
    r"max\w* context (length|window|size)|context (length|window|size|limit)\w*.{0,40}exceed|exceed\w*.{0,40}context"
    r"|(prompt|input|conversation)( is|:)? too long|reduce the length of the (messages|input|prompt)"
    r"|(longer|greater|larger) than .{0,40}context|(messages|input)(\[\d+\])?\W?\.(content|output)"
    r"|`inputs` tokens|max message tokens",
    re.IGNORECASE,
)
"""Words that say so whatever else is said: how many of the tokens are in tools, and what the answer may still take."""


OUT_OF_TIME = re.compile(r"context (deadline exceeded|cancell?ed)", re.IGNORECASE)
"""The words of servers in Go for a timeout, in which the context is none of a model."""


def overflow(status: int | None, said: str, *codes: str) -> FailureReason:
    """Return the reason of a refusal, if it is that the conversation is too long for the model; else an empty text."""
    if status == TOO_LARGE or any(map(OVERFLOW_CODE.search, codes)):
        return "context_length_exceeded"
    said = OUT_OF_TIME.sub("", said)
    is_said = all(words.search(said) for words in (CONVERSATION, SIZE, TOO_MUCH))
    if not is_said or status not in (None, 400, 422, 500, 502, 503):
        return ""
    is_doubtful = ANOTHER_LIMIT.search(said) or status in (502, 503)
    return "" if is_doubtful and not SURELY.search(said) else "context_length_exceeded"


UNREAD_CALL = re.compile(
    r"tool_use_failed|output_parse_failed|malformed.{0,3}(function|tool).{0,3}call"
    r"|fail\w* to (call a function|(parse|read|decode)[^.;]{0,40}\b(tool|function)s?\b)"
    r"|(error|exception|problem)s?( while| when)? pars\w+[^.;]{0,40}\b(tool|function)s?\b"
    r"|(could|can) ?not (be )?(parse|read|decode)[^.;]{0,40}\b(tool|function)s?\b"
    r"|model (output|generated|did not (output|generate))[^.;]{0,20}valid (json|(tool|function) calls?)\b"
    r"|invalid (tool|function) calls? (was |were )?generated",
    re.IGNORECASE,
)
IN_REQUEST = re.compile(r"\b(messages|input|tools)(\[|\.)?\d")


def is_unread_call(said: str, *codes: str) -> bool:
    """Return whether the server could not read a call that the model wrote: drawn again, it is mostly right."""
    return any(map(UNREAD_CALL.search, (said, *codes))) and not IN_REQUEST.search(said)


# What is changed in requests to a server that refuses a part of them


Body = dict[str, Any]

PARTS = {
    "include": r"encrypted.?content|[`'\"]include\b",
    "stream_options": r"\b(stream_options|include_usage)\b",
}
"""The parts of a request that can be left out, beside fields that servers sent; with the words that name each."""

FORMAT = frozenset(
    {"role", "content", "refusal", "name", "tool_calls", "tool_call_id", "id", "type", "function", "arguments",
     "call_id", "output", "summary", "encrypted_content"}
)  # fmt: skip
"""The fields of messages, items and calls."""

WANTED = re.compile(r"\b(missing|required|must be)\b(?! satisfied)", re.IGNORECASE)
ORDER_OF_ROLES = (
    re.compile(r"\b(after|follow|before|alternat|order|sequence|expect|unexpect|preced|next|last)", re.IGNORECASE),
    re.compile(r"\b(tool|function|roles?)\b", re.IGNORECASE),
    re.compile(r"\b(user|assistant)\b", re.IGNORECASE),
)
"""Words of refusals of a user right after a tool, or after a user."""

REFUSED = (400, 404, 413, 415, 422, 500, 501)
"""Statuses of requests that the server does not take; 5xx: of servers that mix them up with their own failures."""


def lesson(status: int | None, said: str, body: Body) -> str:
    """Return the change of requests that a refusal of `body` teaches: "bridge", the name of a part, or none."""
    if status not in REFUSED:
        return ""
    if all(words.search(said) for words in ORDER_OF_ROLES) and _bridged(body) != body:
        return BRIDGE
    parts = PARTS | {name: rf"\b{re.escape(name)}\b" for name in sorted(_names_in(body) - FORMAT)}
    refused = (part for part, words in parts.items() if re.search(words, said) and _without(part, body) != body)
    return "" if WANTED.search(said) else next(refused, "")


def changed(body: Body, changes: Iterable[str]) -> Body:
    """Return a body without these parts, or bridged."""
    for change in changes:
        body = _bridged(body) if change == BRIDGE else _without(change, body)
    return body


BRIDGE, BETWEEN = "bridge", "Understood."
"""The change for servers that want an assistant before each message of the user, and the text of that message."""


def _bridged(body: Body) -> Body:
    messages: list[Any] = []
    for message in body.get("messages", ()):
        if messages and messages[-1].get("role") in ("tool", "user") and message.get("role") == "user":
            messages.append({"role": "assistant", "content": BETWEEN})
        messages.append(message)
    return body | ({"messages": messages} if messages else {})


def _without(part: str, body: Body) -> Body:
    """Return a body without a part, at its top and in its messages, items and calls."""
    left = {name: value for name, value in body.items() if name != part}
    return left | {held: _pruned(part, left[held]) for held in ("messages", "input") if held in left}


def _pruned(part: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_pruned(part, inner) for inner in value]
    if not isinstance(value, dict):
        return value
    nested = {name: _pruned(part, value[name]) for name in ("tool_calls", "function") if name in value}
    return {name: inner for name, inner in (value | nested).items() if name != part}


def _names_in(body: Body) -> set[str]:
    """Return the names of the fields of all messages, items and calls."""
    messages = [*body.get("messages", ()), *body.get("input", ())]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return {name for each in (*messages, *calls, *(call["function"] for call in calls)) for name in each}


IMAGES = r"(image|vision|multi-?modal|picture|media.?type|modalit)"
IMAGE_WORDS = re.compile(rf"support.*{IMAGES}|{IMAGES}.*(support|input|allowed)|mmproj", re.IGNORECASE)


def refuses_images(status: int | None, said: str) -> bool:
    """Return whether a refusal of a request with pictures may be because of them: if words or status allow it."""
    return status in (400, 413, 415, 422) or (status in REFUSED and IMAGE_WORDS.search(said) is not None)
