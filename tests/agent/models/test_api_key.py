"""Keys that do not live long: `get_api_key` is asked for each inference, and whatever goes wrong there has a name."""

import threading
from collections.abc import Callable
from typing import Any, get_args

import anyio
import pytest

from agent import Agent
from agent.models.model import ModelError, ModelRequest
from agent.models.openai_model import Api, OpenAIModel
from agent.vocabulary.messages import UserMessage
from tests.agent.models.hostile_server import Server
from tests.agent.models.shapes import words

pytestmark = pytest.mark.anyio

GO = ModelRequest("", (UserMessage("go"),))


async def ask(server: Server, get_api_key: Any, api: Api = "chat") -> str:
    server.stream(*words(api, "hello"))
    answer = await OpenAIModel("m", api=api, base_url=server.url, get_api_key=get_api_key).answer(GO, lambda _: None)
    return answer.message.text


@pytest.mark.parametrize("api", get_args(Api))
async def test_each_inference_has_the_key_of_its_moment(server: Server, api: Api) -> None:
    server.stream(*words(api, "hello"))
    server.stream(*words(api, "hello again"))
    keys = iter(["first-key", "second-key"])
    model = OpenAIModel("m", api=api, base_url=server.url, get_api_key=lambda: next(keys))

    with Agent(model) as agent:
        await agent.run("go")
        await agent.run("go on")

    assert [headers["authorization"] for _, headers, _ in server.requests] == ["Bearer first-key", "Bearer second-key"]


async def test_it_may_be_async(server: Server) -> None:
    async def fetch() -> str:
        await anyio.lowlevel.checkpoint()
        return "fetched-key"

    assert await ask(server, fetch) == "hello"
    assert server.requests[0][1]["authorization"] == "Bearer fetched-key"


async def test_one_that_is_not_async_does_not_hold_up_the_loop(server: Server) -> None:
    threads: list[threading.Thread] = []

    def fetch() -> str:
        threads.append(threading.current_thread())
        return "a-key-of-mine"

    await ask(server, fetch)

    assert threads != [threading.current_thread()]


def raising() -> str:
    raise OSError("vault is locked")


@pytest.mark.parametrize(
    ("get_api_key", "said"),
    [
        (raising, "get_api_key raised OSError: vault is locked"),
        (lambda: "", "get_api_key gave an empty text"),
        (lambda: None, "get_api_key gave a value of type NoneType"),
        (lambda: "clé", "the API key holds characters that no key has"),
    ],
)
async def test_what_goes_wrong_there_ends_the_run_and_says_so(
    server: Server, get_api_key: Callable[[], str], said: str
) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(server, get_api_key)
    with Agent(OpenAIModel("m", base_url=server.url, get_api_key=get_api_key)) as agent:
        run = await agent.run("go")

    assert said in str(caught.value)
    assert (run.status, run.reason) == ("failed", "inference_failed")
    assert said in run.text
    assert not server.requests


async def test_one_that_hangs_is_cancelled(server: Server) -> None:
    with anyio.move_on_after(0.1) as scope:
        await ask(server, anyio.sleep_forever)

    assert scope.cancelled_caught


async def test_its_keys_are_in_no_message(server: Server) -> None:
    server.answer_status("401 Unauthorized", '{"error": {"message": "bad key short-lived-key"}}')
    model = OpenAIModel("m", base_url=server.url, get_api_key=lambda: "short-lived-key")

    with pytest.raises(ModelError, match=r"bad key \*\*\*"):
        await model.answer(GO, lambda _: None)


def test_with_it_the_server_of_openai_needs_no_other_key() -> None:
    assert OpenAIModel("m", get_api_key=lambda: "k").base_url == "https://api.openai.com/v1"
