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
from agent.models.refusals import is_unread_call, overflow

PASSING_STATUSES = frozenset({408, 409, 429})
"""Retryable HTTP statuses below 500; all from 500 on are retryable."""

PERMANENT = frozenset(
    {
        "bio_policy", "content_policy_violation", "context_length_exceeded", "data_residency_mismatch",
        "insufficient_quota", "misalignment_policy_violation", "model_not_found", "BadRequestError",
    }
)  # fmt: skip
"""Codes of permanent errors, beside those about images and invalid requests."""

PERMANENT_BEGINNINGS = ("invalid_", "image_", "unsupported_", "empty_image")

TOO_MANY_REQUESTS = 429


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def is_passing(status: int) -> bool:
    """Return whether a retry may succeed after this HTTP error status."""
    return status in PASSING_STATUSES or status >= 500


def reported_error(event: Mapping[str, Any], *content: str) -> object:
    """Return the error that an event of a stream reports, in a field or as a whole; nothing for any other event.

    content: the fields that no error has.
    """
    if error := event.get("error") or event.get("errors"):
        return error
    if "error" in (event.get("object"), event.get("type")) or not any(name in event for name in content):
        return event if any(event.get(name) for name in MESSAGE_FIELDS) else None
    return None


MESSAGE_FIELDS = ("message", "detail", "msg", "error_message", "error_msg")
"""The fields in which servers say what is wrong."""


def broke_off(error: object) -> ModelError:
    """Return the `ModelError` for an error that the server reports; retryable unless its code says otherwise.

    A code is a word or, from some servers, an HTTP status.
    """
    found = mapping(error[0] if isinstance(error, list) and error else error)
    found = mapping(found.get("error")) or found
    said = _message(error, f"{error}")[:300]
    codes = [f"{code}" for name in ("code", "status_code", "status", "type") if (code := found.get(name))]
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), None)
    reason = "" if status == TOO_MANY_REQUESTS else overflow(status, said, *codes)
    if status is not None:
        retryable = is_passing(status) or is_unread_call(said, *codes)
    else:
        is_permanent = any(code in PERMANENT or code.startswith(PERMANENT_BEGINNINGS) for code in codes)
        retryable = not is_permanent or is_unread_call(said, *codes)
    told = f"{found['code']}: {said}" if found.get("code") else said
    return ModelError(
        f"the model's server broke off: {told}", retryable=retryable and not reason, status=status, reason=reason
    )


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
            event = getattr(error, "doc", "").strip()
            told = f"{error!s:.200}{f' in {event!r:.100}' if event else ''}"
            return ModelError(f"the stream from {url} is broken: {told}; nothing of it was used", retryable=True)
        case _:
            return ModelError(f"the request to {url} failed: {str(error)[:300] or type(error).__name__}")


def describe_status(status: int, page: str, wait: float | None, url: str) -> ModelError:
    """Return the `ModelError` for a response with an HTTP error status.

    page: its body. wait: the seconds that the server asks for.
    """
    try:
        read = json.loads(page)
    except (ValueError, RecursionError):
        read = None
    said = " ".join(_message(read, page).split())[:300] or "no reason given"
    cure = f"; {CURES[status]}" if status in CURES else ""
    error = mapping(mapping(read).get("error")) or mapping(read)
    if (field := error.get("param")) and f"{field}" not in said:
        said = f"{said} ({field})"
    codes = [f"{error.get(name)}" for name in ("code", "type", "status")]
    reason = "" if status == TOO_MANY_REQUESTS else overflow(status, said, *codes)
    may_help = is_passing(status) or is_unread_call(said, *codes)
    return ModelError(
        f"{url} answered {status}: {said}{cure}",
        retryable=may_help and not reason and "insufficient_quota" not in codes,
        retry_after=wait,
        status=status,
        reason=reason,
    )


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the wait that response headers ask for, in seconds: milliseconds win, since they are more precise."""
    milliseconds = parse_retry_after(headers.get("retry-after-ms"), datetime.now(UTC), unit=0.001)
    return parse_retry_after(headers.get("retry-after"), datetime.now(UTC)) if milliseconds is None else milliseconds


def parse_retry_after(value: str | None, now: datetime, unit: float = 1.0) -> float | None:
    """Return the seconds of a `retry-after` header, 0 to `LONGEST_WAIT`; None if there are none.

    The header holds seconds or an HTTP date (RFC 9110, 10.2.3).
    """
    if value is None:
        return None
    try:
        seconds = float(value) * unit
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
    raw = ""
    while isinstance(found, dict):
        raw = mapping(found.get("metadata")).get("raw") or raw  # what a provider said behind a gateway
        found = next((value for name in ("error", *MESSAGE_FIELDS) if (value := found.get(name))), None)
    if not found and "<html" in page[:1000].lower():
        title = re.search(r"<title[^<>]*>([^<]*)</title>", page[:5000], re.IGNORECASE)
        return f"a web page: {title[1] if title else re.sub('<[^<>]*>', ' ', page[:5000])}"
    return f"{found or page}: {raw}" if raw else f"{found or page}"
