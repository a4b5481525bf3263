"""The scripted model: a product for demos, tests and experiments."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import Agent
from agent.models.model import Answer, Delta, ModelError, ModelRequest, join_deltas
from agent.models.scripted import ScriptedModel, ScriptError, Step, answer, call, delay, fail, load_script
from agent.vocabulary.messages import AssistantMessage, RequestedCall, Usage, UserMessage
from tests.tables import rows

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("Be brief.", (UserMessage("go"),))


def ignore(piece: Delta) -> None:
    """No listener looks on."""


async def played(model: ScriptedModel, number: int) -> list[Answer]:
    return [await model.answer(REQUEST, ignore) for _ in range(number)]


async def play(*steps: Step) -> list[Answer]:
    return await played(ScriptedModel(steps), len(steps))


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
    [given] = await play([call("x", {"id": 1, "given": 2}, tool=3).with_id("a"), call("x", '{"command": "rm -')])

    assert [call.arguments for call in given.message.calls] == ['{"id": 1, "given": 2, "tool": 3}', '{"command": "rm -']


async def test_functions_of_the_request_make_steps() -> None:
    async def later(request: ModelRequest) -> Step:
        return lambda again: f"{request.messages[-1].text} {again.system_prompt}"

    answers = await play(lambda request: call(request.messages[-1].text), later)

    assert answers[0].message.calls == (RequestedCall("call_1", "go", "{}"),)
    assert answers[1].message.text == "go Be brief."


@rows("step", [fail("overloaded", retryable=True, retry_after=2), delay(0, fail("overloaded"))])
async def test_scripted_errors_are_raised(step: Step) -> None:
    with pytest.raises(ModelError, match="overloaded"):
        await play(step)


async def test_a_delay_honours_cancellation() -> None:
    model = ScriptedModel([delay(3600, "late")])

    with anyio.move_on_after(0.01) as scope:
        await model.answer(REQUEST, ignore)

    assert scope.cancelled_caught


@rows("step", [7, ["text"]])
async def test_a_value_that_is_no_step_is_named(step: Any) -> None:
    with pytest.raises(TypeError, match=r"a step of the script is .*; give a text"):
        await play(step)


async def test_text_streams_in_a_few_pieces() -> None:
    seen: list[Delta] = []

    await ScriptedModel([answer("Hello, world!", reasoning="hm")]).answer(REQUEST, seen.append)

    assert 1 < len(seen) <= 8
    assert list(join_deltas(seen)) == [Delta("hm", "reasoning"), Delta("Hello, world!")]


async def test_a_model_that_extends_a_script_may_wait() -> None:
    class Waiting(ScriptedModel):
        async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
            await anyio.sleep(0)
            return await super().answer(request, on_delta)

    run = await Agent(Waiting(["Hello."])).run("Go")

    assert run.text == "Hello."


async def test_keys_of_a_merge_are_keys(tmp_path: Path) -> None:
    model = load(tmp_path, "steps:\n  - &a {say: x}\n  - {<<: *a, delay: 0.01}\n")

    assert [answer.message.text for answer in await played(model, 2)] == ["x", "x"]


async def test_a_script_that_is_used_up_says_so() -> None:
    model = ScriptedModel(["a", "b"])
    await played(model, 2)

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
    await played(model, 3)
    model.assert_complete()


# A scripted model as a file; every mistake in it is told with file, line and column.


def load(folder: Path, text: str) -> ScriptedModel:
    path = folder / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return load_script(path)


async def test_a_script_file_equals_the_same_list_of_steps(tmp_path: Path) -> None:
    model = load(
        tmp_path,
        """
        name: explorer
        steps:
          - say: I look around.
            call: {tool: bash, arguments: {command: "ls é", deep: [1, 2.5, true, null, {x: y}]}}
          - calls:
              - {tool: read_file, id: mine}
              - {tool: bash, arguments: '{"command": "ec'}
            stop_reason: length
            reasoning: hm
            usage: {input_tokens: 120, output_tokens: 8}
          - say: Done.
            delay: 0
          - Bye.
        """,
    )
    steps: list[Step] = [
        answer("I look around.", call("bash", command="ls é", deep=[1, 2.5, True, None, {"x": "y"}])),
        answer("", call("read_file").with_id("mine"), call("bash", '{"command": "ec'), stop_reason="length",
               reasoning="hm", usage=Usage(120, 8)),
        delay(0, "Done."),
        "Bye.",
    ]  # fmt: skip

    assert await played(model, 4) == await played(ScriptedModel(steps), 4)
    assert model.name == "explorer"


async def test_calls_are_numbered_after_those_of_the_conversation_that_it_goes_on_with() -> None:
    earlier = AssistantMessage(calls=(RequestedCall("call_9", "look", "{}"), RequestedCall("mine", "look", "{}")))
    model = ScriptedModel([call("look"), call("look")])

    answers = [await model.answer(ModelRequest("", (earlier,)), lambda _: None) for _ in range(2)]

    assert [each.message.calls[0].id for each in answers] == ["call_10", "call_11"]


async def test_a_script_file_can_give_an_error(tmp_path: Path) -> None:
    model = load(tmp_path, "steps: [{error: {message: overloaded, retryable: true, retry_after: 2}}]")

    with pytest.raises(ModelError, match="overloaded") as caught:
        await played(model, 1)

    assert (caught.value.retryable, caught.value.retry_after, model.name) == (True, 2.0, "script")


def test_the_example_in_the_documentation_is_a_script(tmp_path: Path) -> None:
    _, _, example = inspect.cleandoc(load_script.__doc__ or "").partition("\n\n")

    with pytest.raises(AssertionError, match="4 of 4 steps were never asked for"):
        load(tmp_path, example).assert_complete()


@rows(
    ("text", "said"),
    [
        ("steps:\n  - sya: x\n", "2:5: unknown key 'sya'; did you mean 'say'?"),
        ("stesp: []\n", "1:1: unknown key 'stesp'; did you mean 'steps'?"),
        ("steps:\n  - call: {tool: b, argumens: {}}\n", "2:21: unknown key 'argumens'; did you mean 'arguments'?"),
        ("steps:\n  - 7: x\n", "2:5: unknown key 7; there are: say, call,"),
        ("steps:\n  - call: {arguments: {}}\n", "2:11: the key 'tool' is missing"),
        ("name: x\n", "1:1: the key 'steps' is missing"),
        ("steps:\n  - say: 1\n", "2:10: expected a text, found 1"),
        ("steps: x\n", "1:8: expected a list, found 'x'"),
        ("- a\n", "1:1: expected a mapping with 'steps', 'name', found a list"),
        ("", "1:1: expected a mapping with 'steps', 'name', found nothing"),
        ("steps:\n  - {}\n", "2:5: a step says or calls something, or fails"),
        ("steps:\n  - say: x\n    stop_reason: lenght\n", "3:18: expected one of 'stop', 'tool_calls', 'length',"),
        ("steps:\n  - say: x\n    delay: -1\n", "3:12: expected a number from 0 on, found -1"),
        ("steps:\n  - say: x\n    usage: {input_tokens: 1.5}\n", "3:27: expected a whole number from 0 on, found 1.5"),
        ("steps:\n  - error: {message: x, retryable: maybe}\n", "2:36: expected true or false, found 'maybe'"),
        (
            "steps:\n  - say: x\n    error: {message: x}\n",
            "3:12: a step is an answer or an error; this one has 'say' too",
        ),
        ("steps:\n  - call: {tool: b, arguments: {x: 2020-01-01}}\n", "2:32: a value is not JSON: Object of type date"),
        ("steps:\n  - call: {tool: b, arguments: {x: .nan}}\n", "2:32: a value is not JSON: "),
        ("steps:\n  - call: {tool: b, arguments: [1]}\n", "2:32: expected a mapping or a text, found a list"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        load(tmp_path, text)

    assert str(caught.value).removeprefix(f"{tmp_path}/script.yaml:").startswith(said)
