"""A scripted model as a file; every mistake in it is told with file, line and column."""

import inspect
from pathlib import Path

import pytest

from agent.models.model import Answer, ModelError, ModelRequest
from agent.models.scripted import ScriptedModel, ScriptError, Step, answer, call, delay, load_script
from agent.vocabulary.messages import Usage, UserMessage

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("", (UserMessage("go"),))


def load(folder: Path, text: str) -> ScriptedModel:
    path = folder / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return load_script(path)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(ScriptError) as caught:
        load(folder, text)
    return str(caught.value).removeprefix(f"{folder}/script.yaml:")


async def play(model: ScriptedModel, number: int) -> list[Answer]:
    return [await model.answer(REQUEST, lambda piece: None) for _ in range(number)]


async def test_a_file_says_what_a_list_of_steps_says(tmp_path: Path) -> None:
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

    assert await play(model, 4) == await play(ScriptedModel(steps), 4)
    assert model.name == "explorer"


async def test_a_file_can_fail(tmp_path: Path) -> None:
    model = load(tmp_path, "steps: [{error: {message: overloaded, retryable: true, retry_after: 2}}]")

    with pytest.raises(ModelError, match="overloaded") as caught:
        await play(model, 1)

    assert (caught.value.retryable, caught.value.retry_after, model.name) == (True, 2.0, "script")


def test_the_example_in_the_documentation_is_a_script(tmp_path: Path) -> None:
    _, _, example = inspect.cleandoc(load_script.__doc__ or "").partition("\n\n")

    with pytest.raises(AssertionError, match="4 of 4 steps were never asked for"):
        load(tmp_path, example).assert_complete()


@pytest.mark.parametrize(
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
        ("steps:\n  - call: {tool: b, arguments: {x: 2020-01-01}}\n", "2:36: 2020-01-01 (date) is no JSON value"),
        ("steps:\n  - call: {tool: b, arguments: {x: .nan}}\n", "2:36: nan is no JSON value"),
        ("steps:\n  - call: {tool: b, arguments: {1: a}}\n", "2:33: the key 1 is not a text"),
        ("steps:\n  - call: {tool: b, arguments: [1]}\n", "2:32: expected a mapping or a text, found a list"),
        ("steps:\n  - say: [x\n", "3:1: not valid YAML: expected ',' or ']'"),
        ("steps:\n  - say: x\n    say: y\n", "3:5: not valid YAML: found duplicate key"),
        ("steps:\n\t- x\n", "2:1: not valid YAML: found character '\\t'"),
        ("steps: []\n---\nsteps: []\n", "2:1: not valid YAML: but found another document"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert complaint(tmp_path, text).startswith(said)


def test_values_that_are_nested_too_deeply_are_an_error(tmp_path: Path) -> None:
    said = complaint(tmp_path, f"steps:\n- call: {{tool: b, arguments: {{x: {'[' * 500}{']' * 500}}}}}")

    assert said == " not valid YAML: values are nested too deeply"


async def test_keys_of_a_merge_are_keys(tmp_path: Path) -> None:
    model = load(tmp_path, "steps:\n  - &a {say: x}\n  - {<<: *a, delay: 0.01}\n")

    assert [answer.message.text for answer in await play(model, 2)] == ["x", "x"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"steps: [\xe9]")

    for name, said in (("none.yaml", "no such file"), ("", "is a directory"), ("latin.yaml", "is not UTF-8")):
        with pytest.raises(ScriptError, match=said):
            load_script(tmp_path / name)
