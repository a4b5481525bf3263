"""What refusals of servers mean, in their own words, and what the client leaves out of its requests because of them."""

import json
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, tool
from agent.models.failures import broke_off, describe_status
from agent.models.openai_model import Api, OpenAIModel
from agent.presets import PRESETS
from agent.vocabulary.messages import Image, ToolMessage, ToolResult, UserMessage
from tests.agent.models.conftest import Server
from tests.agent.models.shapes import call, delta, words
from tests.tables import rows

pytestmark = pytest.mark.anyio

TOO_LONG: list[tuple[int, str]] = [
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens."),
    (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 10346 tokens "
        "(9346 in the messages, 1000 in the functions). Please reduce the length of the messages or "
        "functions.",
    ),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, "request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it"),
    (500, "the request exceeds the available context size. try increasing the context size or enable context shift"),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "prompt is too long: 208310 tokens > 200000 maximum"),
    (
        400,
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length "
        "or `max_tokens` and try again",
    ),
    (400, "the input length exceeds the context length"),
    (500, "prompt too long; exceeded max context length by 812 tokens"),
    (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Prompt contains 40000 tokens, too large: 32768 maximum context length"),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (413, "Please reduce the length of the messages or completion."),
    (400, "Please reduce the length of the messages or completion. Current length is 9215 while limit is 8192"),
    (400, "Input is too long for requested model."),
    (400, "Invalid request: Your request exceeded model token limit: 131072"),
    (400, "prompt token count of 132091 exceeds the limit of 128000"),
    (400, "invalid params, context window exceeds limit"),
    (400, "invalid params, context window exceeds limit (2013)"),
    (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
    (
        400,
        "You passed 9001 input tokens and requested 100 output tokens. However, the model's context length "
        "is only 8192 tokens, resulting in a maximum input length of 8092 tokens. Please reduce the length "
        "of the input prompt.",
    ),
    (413, "Request Entity Too Large"),
    (413, ""),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5003"),
    (400, "Range of input length should be [1, 129024]"),
    (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
    (400, "Total tokens of image and text exceed max message tokens"),
    (400, "the length of messages exceeds the limit"),
    (400, "Prompt exceeds max length"),
    (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
        "tokens and 20 `max_new_tokens`",
    ),
    (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"),
    (400, "Requested tokens (5012) exceed context window of 4096"),
    (
        400,
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a "
        "total of 6000 tokens",
    ),
    (400, "Prompt length (5000) exceeds maximum input length (4096)"),
    (400, "The prompt is too long: 5000, model maximum context length: 4096"),
    (400, "Input length 5000 exceeds maximum length 4096"),
    (
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but "
        "got a string with length 2000000 instead.",
    ),
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is "
        "4096 tokens and your request has 3000 input tokens (5000 > 4096 - 3000).",
    ),
    (
        400,
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 150000 tokens "
        "(140000 of text input, 10000 in the output). Please reduce the length of either one, or use the "
        "\"middle-out\" transform",
    ),
    (500, "context length exceeded"),
    (400, "Context size has been exceeded."),
    (400, "The total number of tokens in the request exceeds the model's limit of 32768"),
    (400, "The conversation is too long to continue"),
    (400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
    (400, "Your prompt is too large. Please shorten your prompt."),
    (
        400,
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens",
    ),
    (400, "maximum tokens exceeded: input 9000 tokens, limit 8192"),
    (422, "The chat history is too long for this model"),
    (400, "Token limit exceeded: 9000 tokens in prompt, max 8192"),
    (400, "messages have 9000 tokens, which is over the limit of 8192 tokens"),
    (400, "prompt has 9000 tokens, but the model supports at most 8192 tokens"),
    (400, "Sequence length 9000 is larger than max_model_len 8192"),
    (400, "input is larger than n_ctx"),
    (400, "number of input tokens (9000) has exceeded max_seq_len (8192) limit"),
    (400, "Request too large for model `x`"),
    (400, "context window is full"),
    (400, "This request would exceed the model's context window"),
    (
        400,
        "Unable to submit request because the input token count is 40000 but model only supports up to "
        "32767. Reduce the input token count and try again.",
    ),
    (400, "Max tokens limit exceeded for the prompt"),
    (502, "Upstream error: This model's maximum context length is 8192 tokens."),
]  # fmt: skip
"""What servers and providers in wide use say of a conversation that is too long, with their status."""

OTHER_LIMITS: list[tuple[int, str]] = [
    (
        400,
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you "
        "provided 50000.",
    ),
    (400, "Invalid value for 'context': must be a string of at most 100 characters"),
    (404, "The model `gpt-context-length` does not exist"),
    (400, "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 30000, Used 29000, Requested 35000"),
    (400, "Request too large for gpt-4 on tokens per min (TPM): Limit 30000, Requested 35000."),
    (
        400,
        "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less than "
        "the `context_window` for this model",
    ),
    (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude"),
    (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    (400, "The maximum tokens you requested exceeds the model limit of 4096"),
    (400, "max_completion_tokens is too large: 5000"),
    (
        400,
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length "
        "1024, but got a string with length 2000 instead.",
    ),
    (400, "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64"),
    (400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40"),
    (400, "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6 > 5"),
    (400, "image dimensions exceed max allowed size: 8000 pixels"),
    (400, "You exceeded your current quota, please check your plan"),
    (400, "Your credit balance is too low"),
    (400, "Too many tools: at most 128 tools may be given"),
    (400, "temperature must be less than 2"),
    (400, "stop: too many stop sequences, at most 4"),
    (400, "Unexpected role 'user' after role 'tool'"),
    (400, "Function call is missing a thought_signature"),
    (400, "Invalid schema for function 'look': object schema missing properties"),
    (400, "metadata: value too long, at most 512 characters"),
    (400, "Unknown parameter: context_length"),
    (400, "n must be at most 8"),
    (401, "token is invalid: too long"),
    (403, "Your token exceeds its scope"),
    (400, "Missing reasoning_content in the assistant message"),
    (400, "daily token quota exceeded: limit 100000 tokens per day"),
    (400, "Failed to call a function."),
    (400, "messages must not be empty"),
    (400, "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 20"),
    (400, "Too many images in request: at most 20"),
    (400, "thinking.budget_tokens must be less than max_tokens"),
    (400, "max_output_tokens exceeds the maximum of 8192"),
    (400, "Expected maximum length 64 for tool name, got 90"),
    (
        402,
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can "
        "only afford 1000",
    ),
    (400, "Too many messages in queue"),
    (500, "context deadline exceeded"),
    (400, "request canceled (timeout exceeded while reading body): context deadline exceeded"),
    (400, "The maximum batch size was exceeded for this request"),
    (503, "The request exceeds the limit of the server"),
    (400, "requested 5 concurrent requests, limit exceeded"),
    (400, "Invalid type for 'messages': must be an array"),
    (400, "Request timed out: too long"),
    (429, "Rate limit reached: too many tokens per minute; reduce the length of the messages"),
]  # fmt: skip
"""What they say of something else."""


def reason_of(status: int, said: str, **more: str) -> str:
    return describe_status(status, json.dumps({"error": {"message": said, **more}}), None, "u").reason


@rows(("status", "said"), TOO_LONG)
def test_a_conversation_that_is_too_long_is_recognized_in_any_words(status: int, said: str) -> None:
    error = broke_off({"message": said, "code": status})

    assert reason_of(status, said) == error.reason == "context_length_exceeded"
    assert not error.retryable


@rows(("status", "said"), OTHER_LIMITS)
def test_another_limit_is_another_failure(status: int, said: str) -> None:
    assert (reason_of(status, said), broke_off({"message": said, "code": status}).reason) == ("", "")


@rows(
    "code",
    [
        "context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "prompt_too_long",
        "input_too_long", "request_too_large", "tokens_limit_reached",
    ],
)  # fmt: skip
def test_a_code_alone_says_so(code: str) -> None:
    assert reason_of(400, "No.", code=code) == reason_of(400, "No.", type=code) == "context_length_exceeded"
    assert broke_off({"message": "No.", "code": code}).reason == "context_length_exceeded"


@rows(
    ("status", "page", "retryable"),
    [
        (400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}, True),
        (400, {"error": {"message": "Failed to parse tool call arguments as JSON"}}, True),
        (422, {"message": "could not parse the function call of the model"}, True),
        (400, {"error": {"message": "Model output could not be parsed as a tool call"}}, True),
        (400, {"error": {"message": "The model did not output a valid tool call"}}, True),
        (400, {"error": {"message": "invalid tool call generated by the model"}}, True),
        (400, {"error": {"message": "Tool call arguments incomplete: model generated invalid JSON"}}, True),
        (400, {"error": {"message": "messages.2: failed to parse tool_calls"}}, False),
        (400, {"error": {"message": "m does not support tools; take a model with valid tool calls"}}, False),
        (400, {"error": {"message": "Invalid schema for function 'look'"}}, False),
    ],
)
def test_a_call_that_the_server_could_not_read_is_drawn_again(status: int, page: object, retryable: bool) -> None:
    assert describe_status(status, json.dumps(page), None, "u").retryable is retryable


PICTURE = Image("image/svg+xml", b"<svg/>")


@tool(category="read")
async def draw() -> ToolResult:
    """Draw something."""
    return ToolResult("drawn", images=[PICTURE])


# Parts that a server refuses are left out from then on; each refusal is one failed inference


def asks_to_look() -> Any:
    return (delta(reasoning_content="hm"), call("{}", index=0, id="a", name="look", mark="x"), delta("tool_calls"))


@rows(
    ("part", "status", "error"),
    [
        ("stream_options", 422, {"message": "stream_options: Extra inputs are not permitted"}),
        ("stream_options", 400, {"message": "Unsupported parameter", "param": "stream_options"}),
        ("stream_options", 400, {"message": "Unknown field include_usage"}),
        ("stream_options", 400, {"message": "refused", "metadata": {"raw": "unknown field stream_options"}}),
        ("mark", 400, {"message": "Unknown name \"mark\" at 'messages[2].tool_calls[0]': Cannot find field."}),
        ("reasoning_content", 400, {"message": "property 'reasoning_content' is unsupported"}),
        (
            "reasoning_content",
            400,
            {
                "message": "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
                "property 'reasoning_content' is unsupported)]"
            },
        ),
    ],
)
async def test_a_part_that_a_server_refuses_is_left_out_from_then_on(part: str, status: int, error: object) -> None:
    server = Server()
    server.stream(*asks_to_look())
    server.answer_status(f"{status} No", json.dumps({"error": error}))
    for _ in range(2):
        server.stream(*words("chat", "Done."))
    with Agent(OpenAIModel("m", base_url=server.url), wait=lambda _: 0.0) as agent:
        runs = [await agent.run("go"), await agent.run("go on")]
    server.close()

    assert [run.status for run in runs] == ["completed"] * 2
    assert [part in json.dumps(body) for _, _, body in server.requests[1:]] == [True, False, False]


@rows(
    "said",
    [
        "Unexpected role 'user' after role 'tool'",
        "Expected 'assistant' role after 'tool' but got 'user'",
        "conversation roles must alternate user/assistant/user/assistant/...",
        "a tool message must be followed by an assistant message",
        "Invalid message order: tool, user",
    ],
)
async def test_a_server_that_wants_an_assistant_between_tool_and_user_has_one(said: str) -> None:
    for learns in (True, False):
        server = Server()
        server.stream(*asks_to_look())
        server.answer_status("500 Oh No", '{"error": {"message": "down", "code": "insufficient_quota"}}')
        if learns:
            server.answer_status("400 No", json.dumps({"object": "error", "message": said}))
        server.stream(*words("chat", "Done."))
        model = OpenAIModel("m", base_url=server.url, bridge=not learns)
        with Agent(model, wait=lambda _: 0.0) as agent:
            runs = [await agent.run("go"), await agent.run("go on")]
        server.close()

        assert [run.status for run in runs] == ["failed", "completed"]
        roles = [message["role"] for message in server.requests[-1][2]["messages"][1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_server_that_wants_turns_has_an_assistant_between_two_messages_of_the_user_too() -> None:
    server = Server()
    server.answer_status("401 No", "{}")
    server.answer_status("400 No", '{"error": {"message": "Conversation roles must alternate user/assistant"}}')
    server.stream(*words("chat", "Done."))
    with Agent(OpenAIModel("m", base_url=server.url), wait=lambda _: 0.0) as agent:
        runs = [await agent.run("go"), await agent.run("go on")]
    server.close()

    assert [run.status for run in runs] == ["failed", "completed"]
    assert [message["role"] for message in server.requests[-1][2]["messages"][1:]] == ["user", "assistant", "user"]


@rows("raw", ["prompt is too long: 9 tokens > 8 maximum", '{"error": {"message": "prompt is too long: 9 > 8 tokens"}}'])
def test_what_a_provider_said_behind_a_gateway_is_told(raw: str) -> None:
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}

    for told in (describe_status(400, json.dumps({"error": error}), None, "u"), broke_off(error)):
        assert "Provider returned error: " in str(told)
        assert "prompt is too long" in str(told)
        assert told.reason == "context_length_exceeded"


async def test_what_is_wrong_with_a_request_otherwise_is_told_at_once() -> None:
    server = Server()
    server.answer_status("400 No", '{"error": {"message": "stream_options.include_usage is needed for n > 1: no"}}')
    with Agent(OpenAIModel("m", base_url=server.url, stream_options=False), wait=lambda _: 0.0) as agent:
        run = await agent.run("go")
    server.close()

    assert (run.status, len(server.requests)) == ("failed", 1)


# Options of a model


@rows(
    ("accepts", "api", "done", "ended"),
    [
        (True, "chat", True, ("completed", "Half of")),
        (True, "responses", True, ("completed", "Half of")),
        (True, "chat", False, ("failed", "")),
        (False, "chat", True, ("failed", "accept_done")),
    ],
)
async def test_the_end_marker_ends_an_answer_only_where_the_model_says_so(
    accepts: bool, api: Api, done: bool, ended: tuple[str, str]
) -> None:
    server = Server()
    server.stream(*words(api, "Half of")[:2], done=done)
    model = OpenAIModel("m", api=api, base_url=server.url, accept_done=accepts)
    with Agent(model, preset=evolve(PRESETS["default"], attempts=1)) as agent:
        run = await agent.run("go")
    server.close()

    assert run.status == ended[0]
    assert ended[1] in run.text


@rows("status", ["400 Bad Request", "413 Too Large", "415 Unsupported Media Type", "500 image input is not supported"])
async def test_pictures_that_a_server_refuses_are_replaced_by_words(status: str) -> None:
    server = Server()
    server.stream(call("{}", index=0, id="a", name="draw"), delta("tool_calls"))
    server.answer_status(status, json.dumps({"error": {"message": status.partition(" ")[2]}}))
    for _ in range(2):
        server.stream(*words("chat", "Done."))
    with Agent(OpenAIModel("m", base_url=server.url), [draw], wait=lambda _: 0.0) as agent:
        runs = [await agent.run("go"), await agent.run(UserMessage("look", (PICTURE,)))]
    server.close()

    assert [run.status for run in runs] == ["completed"] * 2
    assert [json.dumps(body).count('image_url":') for _, _, body in server.requests] == [0, 1, 0, 1]
    told = server.requests[2][2]["messages"][3]["content"]
    assert told == "drawn\n[image/svg+xml, 6 bytes: left out, the model's server refused it]"
    assert runs[0].messages[2] == ToolMessage("a", ToolResult("drawn", images=(PICTURE,)))  # the conversation keeps it


async def test_without_its_pictures_a_refused_request_fails_for_its_own_reason() -> None:
    server = Server()
    for _ in range(2):
        server.answer_status("400 No", '{"error": {"message": "no such thing"}}')
    with Agent(OpenAIModel("m", base_url=server.url), wait=lambda _: 0.0) as agent:
        run = await agent.run(UserMessage("look", (PICTURE,)))
    server.close()

    assert (run.status, run.reason, len(server.requests)) == ("failed", "inference_failed", 2)
