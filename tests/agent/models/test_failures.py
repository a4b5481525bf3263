"""What went wrong, in one sentence, and when to ask again."""

from datetime import UTC, datetime

import pytest

from agent.models.failures import describe_failure, describe_status, parse_retry_after

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("121", 120.0),
        ("inf", 120.0),
        ("nan", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Thu, 01 Jan 2026 12:00:07 GMT", 7.0),
        ("Thu, 01 Jan 2026 12:00:07 -0000", 7.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Fri, 01 Jan 2027 12:00:00 GMT", 120.0),
        ("Thu, 01 Jan 9999999 12:00:00 GMT", None),
    ],
)
def test_retry_after_holds_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ('{"error": {"message": "no  such\\nmodel"}}', "u answered 400: no such model"),
        ('{"error": "no such model"}', "u answered 400: no such model"),
        ('{"message": "no such model"}', "u answered 400: no such model"),
        ('{"detail": [1]}', "u answered 400: [1]"),
        ("no such model", "u answered 400: no such model"),
        ("", "u answered 400: no reason given"),
        ("{}", "u answered 400: {}"),
        ("x" * 1000, "u answered 400: " + "x" * 300),
    ],
)
def test_the_servers_reason_is_found(page: str, said: str) -> None:
    assert str(describe_status(400, page, None, "u")) == said


def test_an_unknown_failure_is_not_asked_again() -> None:
    error = describe_failure(KeyError("x"), "u")

    assert str(error) == "the request to u failed: 'x'"
    assert not error.retryable
