"""The scripted model: a product for demos, tests and experiments."""

from typing import Any

import anyio
import pytest

from agent.models.calls import read_calls
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.scripted import ScriptedModel, Step, answer, call, delay, fail
from agent.vocabulary.messages import AssistantMessage, RequestedCall, Usage, UserMessage

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("Be brief.", (UserMessage("go"),))


def ignore(piece: Delta) -> None:
    """Nobody looks on."""


async def play(*steps: Step) -> list[Answer]:
    model = ScriptedModel(steps)
    return [await model.answer(REQUEST, ignore) for _ in steps]


async def test_a_text_is_an_answer() -> None:
    assert await play("hello") == [Answer(AssistantMessage("hello"), "stop")]


async def test_text_and_calls_with_numbers_over_the_models_life() -> None:
    answers = await play(
        answer("I look.", call("bash", command="ls"), call("read", path="x"), usage=Usage(3, 4), reasoning="hm"),
        call("bash", command="é"),
        [call("a"), call("b").with_id("mine"), call("c").with_id("")],
        "done",
    )

    assert answers[0] == Answer(
        AssistantMessage(
            "I look.",
            (RequestedCall("call_1", "bash", '{"command": "ls"}'), RequestedCall("call_2", "read", '{"path": "x"}')),
            "hm",
        ),
        "tool_calls",
        Usage(3, 4),
    )
    assert answers[1].message.calls == (RequestedCall("call_3", "bash", '{"command": "é"}'),)
    assert [call.id for call in answers[2].message.calls] == ["call_4", "mine", ""]


async def test_arguments_of_any_name_and_text() -> None:
    [given] = await play([call("x", {"id": 1, "given": 2}, tool=3), call("x", '{"command": "rm -')])

    assert [call.arguments for call in given.message.calls] == ['{"id": 1, "given": 2, "tool": 3}', '{"command": "rm -']


async def test_an_argument_named_id_is_the_tools() -> None:
    """It was taken for the call's own, and the tool got nothing."""
    [given] = await play([call("close", id=7, tool="x", given=1).with_id("mine")])

    assert given.message.calls == (RequestedCall("mine", "close", '{"id": 7, "tool": "x", "given": 1}'),)


async def test_a_cut_off_call() -> None:
    [cut] = await play(answer("", call("bash", '{"command": "rm -'), stop_reason="length"))

    assert cut.stop_reason == "length"
    assert (read_calls(cut, {})[0].flaw or "").startswith("truncated")


async def test_an_answer_is_given_as_it_is() -> None:
    whole = Answer(AssistantMessage("x", (RequestedCall("", "", "?"),)), "content_filter")

    assert await play(whole) == [whole]


async def test_functions_of_the_request_make_steps() -> None:
    async def later(request: ModelRequest) -> Step:
        return lambda again: f"{request.messages[-1].text} {again.system_prompt}"

    answers = await play(lambda request: call(request.messages[-1].text), later)

    assert answers[0].message.calls == (RequestedCall("call_1", "go", "{}"),)
    assert answers[1].message.text == "go Be brief."


@pytest.mark.parametrize("step", [fail("overloaded", retryable=True, retry_after=2), delay(0, fail("overloaded"))])
async def test_errors_are_raised(step: Step) -> None:
    with pytest.raises(ModelError, match="overloaded"):
        await play(step)


async def test_exceptions_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await play(ZeroDivisionError())


@pytest.mark.parametrize("step", [7, ["text"]])
async def test_what_is_no_step_is_named(step: Any) -> None:
    with pytest.raises(TypeError, match=r"a step of the script is .*; give a text"):
        await play(step)


async def test_text_streams_in_a_few_pieces() -> None:
    seen: list[Delta] = []

    await ScriptedModel([answer("Hello, world!", reasoning="hm")]).answer(REQUEST, seen.append)

    assert 1 < len(seen) <= 8
    assert "".join(piece.text for piece in seen) == "Hello, world!"
    assert "".join(piece.reasoning for piece in seen) == "hm"


async def test_a_delay_honours_cancellation() -> None:
    model = ScriptedModel([delay(3600, "late")])

    with anyio.move_on_after(0.01) as scope:
        await model.answer(REQUEST, ignore)

    assert scope.cancelled_caught


async def test_the_requests_are_recorded() -> None:
    model = ScriptedModel(["hi"], name="m")

    await model.answer(REQUEST, ignore)

    assert model.requests == [REQUEST]
    assert model.name == "m"


async def test_a_script_that_is_used_up_says_so() -> None:
    model = ScriptedModel(["a", "b"])
    for _ in range(2):
        await model.answer(REQUEST, ignore)

    with pytest.raises(
        ModelError, match="the script of 2 steps is used up; request 3 asked after UserMessage 'go'"
    ) as caught:
        await model.answer(REQUEST, ignore)

    assert not caught.value.retryable


async def test_assert_complete_names_the_steps_that_were_never_asked_for() -> None:
    model = ScriptedModel(["a", answer("b", call("bash", command="ls")), call("read"), "c"])
    await model.answer(REQUEST, ignore)

    with pytest.raises(AssertionError) as caught:
        model.assert_complete()

    assert str(caught.value) == (
        "3 of 4 steps were never asked for: step 2: 'b', bash {\"command\": \"ls\"}; step 3: read {}; step 4: 'c'"
    )


@pytest.mark.parametrize("steps", [[], ["a"]])
async def test_assert_complete_is_silent_when_all_were(steps: list[Step]) -> None:
    model = ScriptedModel(steps)
    for _ in steps:
        await model.answer(REQUEST, ignore)

    model.assert_complete()
