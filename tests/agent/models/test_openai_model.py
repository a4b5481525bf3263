"""The client against servers on loopback: what goes out, what comes back, and everything that goes wrong between."""

import json
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from agent import Agent, Hooks
from agent.models import openai_model
from agent.models.failures import describe_failure, describe_status, parse_retry_after
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.openai_model import LONGEST_EVENT, Api, OpenAIModel, model_from_name
from agent.models.scripted import ScriptedModel, ScriptError
from agent.tools.schemas import ToolSchema
from agent.vocabulary.messages import AssistantMessage, RequestedCall, ToolMessage, ToolResult, UserMessage
from tests.agent.models.conftest import DONE, Server, frame
from tests.agent.models.shapes import delta, words
from tests.tables import rows

pytestmark = pytest.mark.anyio

HELLO = ModelRequest("Be brief.", (UserMessage("go"),))
LIST = ToolSchema("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


async def ask(
    url: str, request: ModelRequest = HELLO, *, timeout: float = 10, seen: list[Delta] | None = None
) -> Answer:
    model = OpenAIModel("test-model", base_url=url, api_key="secret-key", timeout=timeout)
    return await model.answer(request, (seen if seen is not None else []).append)


async def failure(url: str, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(url, **options)
    return caught.value


async def test_one_inference_is_one_post(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    server.stream(delta("stop", content="hi"))

    await ask(server.url, ModelRequest("Be brief.", (UserMessage("go"),), (LIST,)))

    [(line, headers, body)] = server.requests
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert (headers["authorization"], headers["openai-organization"]) == ("Bearer secret-key", "org-1")
    assert body == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": "bash", "description": "Run a command.",
                                                    "parameters": LIST.parameters}}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip


async def test_a_server_that_never_closes_is_left_after_done_or_when_a_listener_raises(server: Any) -> None:
    server.reply(STREAM, frame(delta("stop", content="hi")), DONE, None)

    assert (await ask(server.url)).message.text == "hi"
    assert await anyio.to_thread.run_sync(server.gone.wait, 100)

    def refuse(piece: Delta) -> None:
        raise KeyError("mine")

    server.gone.clear()
    server.reply(STREAM, frame(delta(content="hi")), None)
    with pytest.raises(KeyError):
        await OpenAIModel("m", base_url=server.url).answer(HELLO, refuse)
    assert await anyio.to_thread.run_sync(server.gone.wait, 100)


async def test_the_key_of_a_hook_takes_the_place_of_the_models_own_for_one_inference(server: Server) -> None:
    keys = iter(["first-key", None])
    model = OpenAIModel("m", base_url=server.url, api_key="its-own-key")
    assert "its-own-key" not in repr(model)
    for _ in range(2):
        server.stream(*words("chat", "hello"))

    with Agent(model, hooks=Hooks(get_api_key=lambda: next(keys))) as agent:
        await agent.run("go")
        await agent.run("go on")

    assert [headers["authorization"] for _, headers, _ in server.requests] == ["Bearer first-key", "Bearer its-own-key"]


@pytest.mark.slow
async def test_a_server_that_neither_ends_nor_closes_is_left_after_the_finish_reason(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_model, "GRACE", 0.1)
    server.reply(STREAM, f"data: {json.dumps(delta('stop', content='hi'))}\n\n".encode(), None)

    answer = await ask(server.url)

    assert answer.message.text == "hi"


def page(status: str, body: str, *headers: str, kind: str = "application/json", length: int | None = None) -> bytes:
    said = (f"Content-Type: {kind}", f"Content-Length: {len(body) if length is None else length}", "Connection: close")
    return "\r\n".join((f"HTTP/1.1 {status}", *said, *headers, "", body)).encode()


ELSEWHERE = '{"error": {"message": "no such thing"}}'
REFUSED = '{"error": {"message": "bad key secret-key"}}'


@rows(
    ("reply", "said", "retryable"),
    [
        (page("307 Temporary Redirect", ELSEWHERE, "Location: http://127.0.0.1:1/v1"), "307: no such thing", False),
        (page("500 Internal Server Error", ELSEWHERE), "500: no such thing", True),
        (page("401 Unauthorized", "bad key", length=99), "answered 401: bad key; check OPENAI_API_KEY", False),
        (page("401 Unauthorized", REFUSED), "bad key ***", False),
        (page("200 OK", "<html>welcome</html>", kind="text/html"), "answered with a web page", False),
        (page("200 OK", "", "Content-Encoding: gzip"), "compressed its answer (gzip)", False),
    ],
)
async def test_what_is_no_answer_is_an_error_in_a_sentence_after_one_request(
    server: Any, reply: bytes, said: str, retryable: bool
) -> None:
    """Retries and redirects would be further requests; the end of a page that breaks off does not matter."""
    server.reply(reply)

    error = await failure(server.url)

    assert f"{server.url} " in str(error)
    assert (said in str(error), error.retryable) == (True, retryable), str(error)
    assert "secret-key" not in str(error)
    assert [headers["accept-encoding"] for _, headers, _ in server.requests] == ["identity"]
    server.requests.clear()


async def test_an_unreachable_server_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    error = await failure(url)

    assert str(error).startswith(f"cannot reach {url}: connection refused; ")
    assert error.retryable


async def test_https_where_the_server_speaks_http_is_said() -> None:
    async def answer_in_http(stream: Any) -> None:
        async with stream:
            await stream.receive(1)
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer_in_http)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        error = await failure(f"https://127.0.0.1:{port}/v1")
        tasks.cancel_scope.cancel()

    assert "this server does not speak https; write http://" in str(error)
    assert "is the server running" not in str(error)
    assert not error.retryable


def test_a_certificate_that_is_not_valid_stays_so() -> None:
    failed, cause = httpx2.ConnectError("failed"), ssl.SSLCertVerificationError(1, "self-signed certificate")
    cause.reason = "CERTIFICATE_VERIFY_FAILED"
    failed.__cause__ = cause

    error = describe_failure(failed, "https://example.org/v1")

    assert "self-signed certificate; is it the right server" in str(error)
    assert not error.retryable


@pytest.mark.slow
async def test_a_silent_server_times_out(server: Any) -> None:
    server.reply(STREAM, None)

    error = await failure(server.url, timeout=0.2)

    assert error.retryable
    assert "timeout" in str(error)


@pytest.mark.slow
async def test_a_flood_of_an_error_page_is_left_before_it_fills_the_memory(server: Any) -> None:
    head = b"HTTP/1.1 500 Oh No\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    server.reply(head, *[b"x" * 1_000_000 for _ in range(LONGEST_EVENT // 1_000_000 + 2)])

    error = await failure(server.url)

    assert "answered 500: xxx" in str(error)
    assert len(str(error)) < 500
    assert await anyio.to_thread.run_sync(server.gone.wait, 5)


async def test_cancellation_closes_the_connection_at_once(server: Any) -> None:
    server.reply(STREAM + f"data: {json.dumps(delta(content='hi'))}\n\n".encode(), None)
    seen: list[Delta] = []
    begun = anyio.Event()

    def look(piece: Delta) -> None:
        seen.append(piece)
        begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(OpenAIModel("m", base_url=server.url).answer, HELLO, look)
        await begun.wait()
        tasks.cancel_scope.cancel()

    assert await anyio.to_thread.run_sync(server.gone.wait, 100)
    assert seen == [Delta("hi")]


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_server_that_this_project_did_not_write(llmock: Any, api: Api) -> None:
    call = {"id": "call_1", "name": "bash", "arguments": '{"command":"ls"}'}
    url = llmock(
        {"match": {"userMessage": "go", "hasToolResult": False}, "response": {"toolCalls": [call]}},
        {"match": {"userMessage": "go", "hasToolResult": True}, "response": {"content": "All done."}},
    )
    model = model_from_name(f"{url}#gpt-4o", {"OPENAI_API_KEY": "any"}, api=api)

    first = await model.answer(ModelRequest("", (UserMessage("go"),), (LIST,)), lambda piece: None)
    conversation = (UserMessage("go"), first.message, ToolMessage("call_1", ToolResult("a.txt")))
    second = await model.answer(ModelRequest("", conversation, (LIST,)), lambda piece: None)

    assert first.message.calls == (RequestedCall("call_1", "bash", '{"command":"ls"}'),)
    assert first.stop_reason == "tool_calls"
    assert second.message == AssistantMessage("All done.")


# Which model a name means, and what a missing key, a bad address and an empty name are told.


KEY = {"OPENAI_API_KEY": "k"}


def test_script_names_a_scripted_model(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("steps: [hi]")

    assert isinstance(model_from_name(f"script:{tmp_path}/s.yaml", {}), ScriptedModel)
    with pytest.raises(ScriptError, match="no such file"):
        model_from_name(f"script:{tmp_path}/none.yaml", {})
    with pytest.raises(ModelError, match="'script:' names no file"):
        model_from_name("script:", {})


@rows(
    ("name", "environ", "expected"),
    [
        ("gpt", KEY, OpenAIModel("gpt", base_url="https://api.openai.com/v1", api_key="k")),
        ("gpt", {"OPENAI_API_KEY": " k\n", "OPENAI_BASE_URL": "http://h:1/v1/"},
         OpenAIModel("gpt", base_url="http://h:1/v1", api_key="k")),
        ("gpt", {**KEY, "OPENAI_BASE_URL": ""}, OpenAIModel("gpt", api_key="k")),
        ("gpt", {"OPENAI_BASE_URL": "http://h:1/v1"}, OpenAIModel("gpt", base_url="http://h:1/v1")),
        ("http://h:1/v1", {}, OpenAIModel("default", base_url="http://h:1/v1")),
        ("http://h:1/v1#qwen/3", {**KEY, "OPENAI_BASE_URL": "http://other"},
         OpenAIModel("qwen/3", base_url="http://h:1/v1", api_key="k")),
    ],
)  # fmt: skip
def test_names_and_addresses_select_model_and_server(name: str, environ: dict[str, str], expected: OpenAIModel) -> None:
    assert model_from_name(name, environ) == expected


@rows(
    ("name", "environ", "said"),
    [
        ("gpt", {}, "no API key: set OPENAI_API_KEY"),
        (
            "gpt",
            {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "https://api.openai.com/v1/"},
            "no API key: set OPENAI_API_KEY",
        ),
        ("https://api.openai.com/v1", {}, "no API key: set OPENAI_API_KEY"),
        ("gpt", {"OPENAI_API_KEY": "clé"}, "the API key holds characters that no key has"),
        (
            "gpt",
            {**KEY, "OPENAI_BASE_URL": "localhost:80"},
            "the base URL 'localhost:80' is not an address; write it like",
        ),
        ("ftp://h/v1", KEY, "the base URL 'ftp://h/v1' is not an address"),
        ("http://h:99999/v1", KEY, "the base URL 'http://h:99999/v1' is not an address"),
        ("http://[::1/v1", KEY, "is not an address"),
        (" ", KEY, "no model is named"),
    ],
)
def test_a_wrong_model_is_an_error_in_one_sentence(name: str, environ: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError) as caught:
        model_from_name(name, environ)

    assert said in str(caught.value)
    assert not caught.value.retryable


def test_a_name_may_end_with_options_in_brackets() -> None:
    url = "http://h:1/v1"
    assert model_from_name(f"{url}#m[accept_done=true, bridge=true]", {}) == OpenAIModel(
        "m", base_url=url, accept_done=True, bridge=True
    )
    assert model_from_name("m[stream_options=false,reasoning_field=thinking]", {"OPENAI_BASE_URL": url}) == OpenAIModel(
        "m", base_url=url, stream_options=False, reasoning_field="thinking"
    )
    assert model_from_name("m[1m]", {"OPENAI_BASE_URL": url}).name == "m[1m]"
    for name, said in {
        "m[acept_done=true]": "there is none; did you mean 'accept_done'",
        "m[bridge=1]": "bridge is '1'; write bridge=true or bridge=false",
    }.items():
        with pytest.raises(ModelError) as caught:
            model_from_name(name, {"OPENAI_BASE_URL": url})
        assert said in str(caught.value)


@rows(
    ("below", "path"),
    [
        ("?api-version=1&x=a%2Fb", "/v1/chat/completions?api-version=1&x=a%2Fb"),
        ("/gpt/?api-version=1", "/v1/gpt/chat/completions?api-version=1"),
        ("/", "/v1/chat/completions"),
        ("/gpt/chat/completions?api-version=1", "/v1/gpt/chat/completions?api-version=1"),
        ("/responses/", "/v1/chat/completions"),
    ],
)
async def test_the_query_of_an_address_stays_a_query(server: Server, below: str, path: str) -> None:
    server.stream(*words("chat", "hello"))
    server.answer_status("400 No", "{}")

    await ask(server.url + below)
    error = await failure(server.url + below)

    assert [line.split()[1] for line, _, _ in server.requests] == [path] * 2
    assert "api-version" not in str(error)
    server.requests.clear()


async def test_settings_are_sent_and_none_leaves_a_field_out(server: Server) -> None:
    server.stream(*words("chat", "hello"))
    model = OpenAIModel("m", base_url=server.url, settings={"stream_options": None, "temperature": 0})

    await model.answer(HELLO, lambda _: None)

    [(_, _, body)] = server.requests
    assert ("stream_options" in body, body["temperature"]) == (False, 0)


async def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    openai_model._ssl_context.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))

    error = await failure("http://127.0.0.1:1/v1")

    assert f"SSL_CERT_FILE': '{tmp_path}/none.pem'" in str(error)


async def test_milliseconds_before_the_next_attempt_win_over_seconds(server: Server) -> None:
    server.answer_status("429 Slow", "{}", "Retry-After-Ms: 1500", "Retry-After: 9")

    assert (await failure(server.url)).retry_after == 1.5


def test_a_variable_sets_how_long_a_server_may_send_nothing() -> None:
    url, variable = "http://127.0.0.1:9/v1", "BPAGENT_MODEL_TIMEOUT"
    named = [
        model_from_name(url, {}),
        *(model_from_name(name, {variable: "5", "OPENAI_BASE_URL": url}) for name in (url, "m")),
    ]

    assert [model.timeout for model in named if isinstance(model, OpenAIModel)] == [600, 5, 5]
    for wrong in ("soon", "0", "nan", "inf"):
        with pytest.raises(ModelError, match="give the seconds"):
            model_from_name(url, {variable: wrong})


async def test_openais_own_server_is_asked_with_the_keys_of_a_hook_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_model, "DEFAULT_BASE_URL", server.url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for model in (OpenAIModel("m"), "m"):
        server.stream(*words("chat", "hello"))
        keys = iter(["short-lived", None])
        with Agent(model, hooks=Hooks(get_api_key=keys.__next__)) as agent:
            first, second = await agent.run("go"), await agent.run("go on")

        assert (first.status, second.status, second.reason) == ("completed", "failed", "inference_failed")
        assert "no API key: set OPENAI_API_KEY" in repr(second.events)
    assert [headers["authorization"] for _, headers, _ in server.requests] == ["Bearer short-lived"] * 2


# What went wrong, in one sentence, and when to ask again


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


def test_an_unknown_failure_is_not_asked_again() -> None:
    error = describe_failure(KeyError("x"), "u")

    assert str(error) == "the request to u failed: 'x'"
    assert not error.retryable


def test_a_quota_that_is_used_up_is_not_asked_again_and_a_rate_limit_is() -> None:
    used_up = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})

    assert not describe_status(429, used_up, None, "u").retryable
    assert describe_status(429, json.dumps({"error": {"message": "Slow down"}}), None, "u").retryable
