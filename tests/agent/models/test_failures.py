"""What went wrong, in one sentence, and when to ask again."""

import json
from datetime import UTC, datetime

from agent.models.failures import broke_off, describe_failure, describe_status, parse_retry_after
from tests.tables import rows

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@rows(
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


@rows(
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
        ("<!doctype html><html><head><title>502 Bad gateway</title><style>b{}</style></head><body>x</body></html>",
         "u answered 400: a web page: 502 Bad gateway"),
        ("<html><h1>Gone</h1></html>", "u answered 400: a web page: Gone"),
    ],
)  # fmt: skip
def test_the_servers_reason_is_found(page: str, said: str) -> None:
    assert str(describe_status(400, page, None, "u")) == said


@rows(
    ("status", "retryable", "said"),
    [
        (400, False, "no such thing"),
        (401, False, "check OPENAI_API_KEY"),
        (403, False, "check what OPENAI_API_KEY may do"),
        (404, False, "check the model's name"),
        (413, False, "413"),
        (422, False, "422"),
        *((status, True, f"{status}") for status in (408, 409, 429, 500, 503, 529)),
    ],
)
def test_the_status_says_whether_to_ask_again(status: int, retryable: bool, said: str) -> None:
    error = describe_status(status, "no such thing", None, "u")

    assert error.retryable is retryable
    assert said in str(error)


OVERFLOWS: dict[str, tuple[int, object]] = {
    "OpenAI": (400, {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted "
                     "in 10000 tokens.", "code": "context_length_exceeded"}),
    "OpenAI, by its code alone": (400, {"message": "No.", "code": "context_length_exceeded"}),
    "OpenAI responses": (400, {"message": "Your input exceeds the context window of this model."}),
    "llama.cpp": (400, {"code": 400, "message": "request (5012 tokens) exceeds the available context size",
                        "type": "exceed_context_size_error", "n_ctx": 4096}),
    "llama.cpp before": (500, {"message": "the request exceeds the available context size. try increasing it"}),
    "vLLM": (400, {"message": "This model's maximum context length is 4096 tokens. However, you asked for 5000"}),
    "vLLM, V1": (400, {"message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096."}),
    "Anthropic": (400, {"message": "prompt is too long: 208310 tokens > 200000 maximum"}),
    "Anthropic, with the answer": (400, {"message": "input length and `max_tokens` exceed context limit: 188240 + 2"}),
    "Ollama": (400, {"message": "the input length exceeds the context length"}),
    "Ollama, runner": (500, {"message": "prompt too long; exceeded max context length by 812 tokens"}),
    "LM Studio": (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
    "Google": (400, {"message": "The input token count (1200000) exceeds the maximum number of tokens."}),
    "Mistral": (400, {"message": "Prompt contains 40000 tokens, too large: 32768 maximum context length"}),
    "xAI": (400, {"message": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    "Groq": (413, {"message": "Please reduce the length of the messages or completion."}),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
}  # fmt: skip


def test_servers_that_say_that_the_conversation_is_too_long_are_understood() -> None:
    answered = {
        name: describe_status(status, json.dumps({"error": said}), None, "u")
        for name, (status, said) in OVERFLOWS.items()
    }
    streamed = {name: broke_off(said) for name, (_, said) in OVERFLOWS.items()}

    assert {name for name, error in answered.items() if error.reason != "context_length_exceeded"} == set()
    assert {name for name, error in streamed.items() if error.reason != "context_length_exceeded"} == set()
    assert not any(error.retryable for error in (*answered.values(), *streamed.values()))


@rows(
    ("status", "said"),
    [
        (429, "Rate limit reached: too many tokens per minute; reduce the length of the messages"),
        (400, "max_tokens is too large: 50000. This model supports at most 16384 completion tokens"),
        (400, "Invalid value for 'context': must be a string of at most 100 characters"),
        (404, "The model `gpt-context-length` does not exist"),
    ],
)
def test_a_similar_message_is_another_failure(status: int, said: str) -> None:
    assert describe_status(status, json.dumps({"error": {"message": said}}), None, "u").reason == ""


def test_an_unknown_failure_is_not_asked_again() -> None:
    error = describe_failure(KeyError("x"), "u")

    assert str(error) == "the request to u failed: 'x'"
    assert not error.retryable


def test_a_quota_that_is_used_up_is_not_asked_again_and_a_rate_limit_is() -> None:
    used_up = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})

    assert not describe_status(429, used_up, None, "u").retryable
    assert describe_status(429, json.dumps({"error": {"message": "Slow down"}}), None, "u").retryable
