"""Errors that a server reports within a stream: whether the same would come again if the same were asked again."""

from agent.models.json_values import error_text, mapping
from agent.models.model import ModelError

__all__ = ["broke_off", "is_passing"]

PASSING_STATUSES = frozenset({408, 409, 429})
"""HTTP statuses below 500 after which the same request may succeed; those from 500 on all may."""

PERMANENT = frozenset(
    {
        "bio_policy",
        "content_policy_violation",
        "context_length_exceeded",
        "data_residency_mismatch",
        "insufficient_quota",
        "misalignment_policy_violation",
        "model_not_found",
    }
)
"""Codes of errors that would come again, besides those about images and invalid requests."""

PERMANENT_BEGINNINGS = ("invalid_", "image_", "unsupported_", "empty_image")


def is_passing(status: int) -> bool:
    """Tell whether asking again may help after an HTTP status that is no success."""
    return status in PASSING_STATUSES or status >= 500


def broke_off(error: object) -> ModelError:
    """Return the `ModelError` for an error that the server reports; retryable unless its code says otherwise.

    A code is a word, or as some servers do it, an HTTP status.
    """
    code = (mapping(error) or {}).get("code")
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        retryable = is_passing(code)
    else:
        retryable = not (isinstance(code, str) and (code in PERMANENT or code.startswith(PERMANENT_BEGINNINGS)))
    said = f"{code}: {error_text(error)}" if code else error_text(error)
    return ModelError(f"the model's server broke off: {said}", retryable=retryable)
