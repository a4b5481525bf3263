"""Describes failures of a request in one sentence, and whether a retry may succeed."""

import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import anyio

from agent.models.model import ModelError
from agent.vocabulary.messages import FailureReason

PASSING_STATUSES = frozenset({408, 409, 429})
"""Retryable HTTP statuses below 500; all from 500 on are retryable."""

PERMANENT = frozenset(
    {
        "bio_policy", "content_policy_violation", "context_length_exceeded", "data_residency_mismatch",
        "insufficient_quota", "misalignment_policy_violation", "model_not_found",
    }
)  # fmt: skip
"""Codes of permanent errors, beside those about images and invalid requests."""

PERMANENT_BEGINNINGS = ("invalid_", "image_", "unsupported_", "empty_image")

OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"})
"""Codes and types of errors for a conversation that is too long: OpenAI, llama.cpp, Anthropic."""

OVERFLOW_WORDS = re.compile(
    r"maximum context length"  # OpenAI, vLLM, OpenRouter, Mistral
    r"|exceeds? the (available )?context (window|size|length)"  # OpenAI's responses, llama.cpp, Ollama
    r"|exceeded max context length"  # Ollama
    r"|exceed context limit|prompt is too long"  # Anthropic
    r"|(prompt|input) \(length \d+\) is longer than the maximum model length"  # vLLM
    r"|greater than the context length|overflows\. However, the model is loaded"  # LM Studio
    r"|input token count.{0,20} exceeds the maximum"  # Google
    r"|maximum prompt length is \d+"  # xAI
    r"|reduce the length of the messages"  # Groq
    r"|input is too long for requested model",  # Bedrock
    re.IGNORECASE,
)
"""The same in words."""

TOO_MANY_REQUESTS = 429


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def is_passing(status: int) -> bool:
    """Return whether a retry may succeed after this HTTP error status."""
    return status in PASSING_STATUSES or status >= 500


def broke_off(error: object) -> ModelError:
    """Return the `ModelError` for an error that the server reports; retryable unless its code says otherwise.

    A code is a word or, from some servers, an HTTP status.
    """
    found = mapping(error)
    code = found.get("code")
    said = f"{found.get('message') or error}"[:300]
    reason = _reason(said, code, found.get("type"))
    if isinstance(code, int) and 400 <= code < 600:
        retryable = is_passing(code)
    else:
        retryable = not (isinstance(code, str) and (code in PERMANENT or code.startswith(PERMANENT_BEGINNINGS)))
    told = f"{code}: {said}" if code else said
    return ModelError(f"the model's server broke off: {told}", retryable=retryable and not reason, reason=reason)


def _reason(said: str, *codes: object) -> FailureReason:
    """Return the reason of an error reported by a server, by its code, type or words."""
    if OVERFLOW_CODES.intersection(code for code in codes if isinstance(code, str)) or OVERFLOW_WORDS.search(said):
        return "context_length_exceeded"
    return ""


LONGEST_WAIT = 120.0
"""The longest wait for a server's `retry-after`, in seconds; longer ones are cut to this."""

CURES = {
    401: "check OPENAI_API_KEY",
    403: "check what OPENAI_API_KEY may do",
    404: "check the model's name and the base URL, which usually ends in /v1",
}


NOT_HTTPS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""Reasons of OpenSSL for an answer that is plain text."""


class ConnectionBroke(ModelError):
    """The server could not be reached, fell silent, or the connection broke. Always retryable."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


@contextmanager
def named_failures(url: str) -> Iterator[None]:
    """Raise exceptions of the block as `ModelError`, described by `describe_failure`."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise describe_failure(error, url) from error


def describe_failure(error: Exception, url: str) -> ModelError:
    """Return the `ModelError` for an exception of a request to `url`, or of its stream.

    ValueError and RecursionError mean a chunk that is not JSON. Unknown exceptions are not retryable.
    """
    import httpx2
    import openai

    match error:
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return ConnectionBroke(f"no answer from {url}: timeout; is the server overloaded?")
        case openai.APIConnectionError() | httpx2.TransportError() | OSError() | anyio.EndOfStream():
            return _describe_connection(error, url)
        case ValueError() | RecursionError():
            return ModelError(
                f"the stream from {url} is broken: {error!s:.200}; nothing of it was used", retryable=True
            )
        case _:
            return ModelError(f"the request to {url} failed: {str(error)[:300] or type(error).__name__}")


def describe_status(status: int, page: str, retry_after: str | None, url: str) -> ModelError:
    """Return the `ModelError` for a response with an HTTP error status; `page`: its body."""
    try:
        read = json.loads(page)
    except (ValueError, RecursionError):
        read = None
    said = " ".join(_message(read, page).split())[:300] or "no reason given"
    cure = f"; {CURES[status]}" if status in CURES else ""
    error = mapping(mapping(read).get("error")) or mapping(read)
    codes = (error.get("code"), error.get("type"))
    reason = "" if status == TOO_MANY_REQUESTS else _reason(said, *codes)
    return ModelError(
        f"{url} answered {status}: {said}{cure}",
        retryable=is_passing(status) and not reason and "insufficient_quota" not in codes,
        retry_after=parse_retry_after(retry_after, datetime.now(UTC)),
        status=status,
        reason=reason,
    )


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds of a `retry-after` header, 0 to `LONGEST_WAIT`; None if there are none.

    The header holds seconds or an HTTP date (RFC 9110, 10.2.3).
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return None if seconds != seconds else min(max(seconds, 0.0), LONGEST_WAIT)  # NaN


def _describe_connection(error: Exception, url: str) -> ModelError:
    causes = [*_causes(error)]
    reason = next((text for text in map(_said, reversed(causes)) if text), "no reason given")
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return ModelError(f"cannot reach {url}: {reason}; is it the right server, and is its certificate known here?")
    if any(isinstance(cause, ssl.SSLError) and cause.reason in NOT_HTTPS for cause in causes):
        return ModelError(f"cannot reach {url}: this server does not speak https; write http://")
    if any(type(cause).__name__ == "ConnectError" for cause in causes):
        return ConnectionBroke(f"cannot reach {url}: {reason}; is the server running, and is the base URL right?")
    return ConnectionBroke(f"the connection to {url} broke: {reason}; nothing of the answer was used")


def _said(cause: BaseException) -> str:
    """Return the message of an error, the system's if it has one; the errno of an SSLError is not the system's."""
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0).lower()
    return f"{cause}"[:200]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and its causes, outermost first; of a group, the first error."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        inner = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = inner or cause.__cause__ or cause.__context__


def _message(found: object, page: str) -> str:
    """Return the message in an error page: the openai form, what compatible servers send instead, or the text."""
    while isinstance(found, dict):
        found = found.get("error") or found.get("message") or found.get("detail")
    if not found and "<html" in page[:1000].lower():
        title = re.search(r"<title[^<>]*>([^<]*)</title>", page[:5000], re.IGNORECASE)
        return f"a web page: {title[1] if title else re.sub('<[^<>]*>', ' ', page[:5000])}"
    return f"{found or page}"
