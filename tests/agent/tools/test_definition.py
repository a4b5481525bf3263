"""`agent.tools.definition`: a function with annotations and a docstring is a tool."""

import pathlib
import threading
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal, Union

import anyio
import jsonschema_rs
import pytest
from attrs import NOTHING, field, frozen, make_class, validators
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import Agent, ScriptedModel, call
from agent.models.scripted import Step
from agent.tools.definition import ToolContext, find_shape, tool
from agent.tools.schemas import Limits, Path, ShellCommand, ToolSchema, Touch
from agent.tools.toolbox import explain_unknown
from agent.vocabulary.calls import ToolCall, ToolResult
from agent.vocabulary.messages import ToolMessage
from tests.tables import rows

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop waits for threads: each of both is tried."""
    return str(request.param)


class Unit(Enum):
    CELSIUS = "C"
    KELVIN = "K"


@frozen
class Place:
    city: str
    zip_code: Annotated[str, Limits(pattern="[0-9]{5}")] | None = None


@frozen
class Options:
    verbose: bool
    depth: Annotated[int, Limits(minimum=0)] = 0


@tool(category="read", parallel=True)
async def forecast(
    place: Place,
    context: ToolContext,
    days: Annotated[int, Limits(minimum=1, maximum=7)] = 1,
    unit: Unit = Unit.CELSIUS,
    tags: list[str] | None = None,
    options: Options | None = None,
    note: Annotated[str, "what to remember"] = "",
) -> str:
    """Forecast the weather.

    For any place on Earth.

    Args:
        place: where
        days: how many days,
            today included
    """
    context.progress("looking")
    return f"{place.city} {days} {unit.name} {tags} {options} {context.call_id}"


async def test_name_description_and_category_come_from_the_function() -> None:
    assert (forecast.name, forecast.category, forecast.parallel) == ("forecast", "read", True)
    assert forecast.description == "Forecast the weather.\n\nFor any place on Earth."
    assert forecast.schema() == ToolSchema("forecast", forecast.description, forecast.parameters)


async def test_the_schema_comes_from_annotations_and_docstring() -> None:
    properties: Any = forecast.parameters["properties"]

    assert forecast.parameters["type"] == "object"
    assert forecast.parameters["required"] == ["place"]
    assert forecast.parameters["additionalProperties"] is False
    assert "context" not in properties
    assert properties["days"] == {
        "type": "integer", "minimum": 1, "maximum": 7, "description": "how many days, today included", "default": 1
    }  # fmt: skip
    assert properties["unit"] == {"type": "string", "enum": ["C", "K"], "default": "C"}
    assert properties["note"]["description"] == "what to remember"
    assert properties["tags"] == {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert properties["place"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "zip_code": {"anyOf": [{"type": "string", "pattern": "^(?:[0-9]{5})$"}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": False,
        "description": "where",
    }


async def test_the_function_gets_python_values_also_from_a_frozen_call() -> None:
    arguments = {"place": {"city": "Ulm"}, "unit": "K", "tags": ["a"], "options": {"verbose": True}, "days": 2.0}
    call = ToolCall("call_1", "forecast", arguments)

    result = await forecast.run(call.arguments, ToolContext("call_1"))

    assert result == ToolResult("Ulm 2 KELVIN ['a'] Options(verbose=True, depth=0) call_1")


@rows(
    ("arguments", "problems"),
    [
        ({"place": {"city": "Ulm"}}, ()),
        ({}, ("place: missing",)),
        ({"place": "Ulm"}, ("place: expected an object, found 'Ulm'",)),
        (
            {"place": {"town": "Ulm", "zip_code": "8907x"}, "days": 8},
            (
                "place.city: missing",
                "place.zip_code: expected a text that matches [0-9]{5} as a whole, found '8907x'",
                "place.town: unknown; use city, zip_code",
                "days: expected at most 7, found 8",
            ),
        ),
        ({"place": {"city": "Ulm"}, "days": True}, ("days: expected an integer, found true",)),
        ({"place": {"city": "Ulm"}, "days": "2"}, ("days: expected an integer, found '2'",)),
        ({"place": {"city": "Ulm"}, "days": 2.5}, ("days: expected an integer, found 2.5",)),
        ({"place": {"city": "Ulm"}, "days": None}, ("days: expected an integer, found null",)),
        ({"place": {"city": "Ulm"}, "unit": "F"}, ("unit: expected one of 'C', 'K'; found 'F'",)),
        ({"place": {"city": "Ulm"}, "tags": ["a", 5]}, ("tags[1]: expected a string, found 5",)),
        ({"place": {"city": "Ulm"}, "options": {"verbose": 1}}, ("options.verbose: expected a boolean, found 1",)),
        ({"place": {"city": "Ulm", "zip_code": "12345\n"}},
         ("place.zip_code: expected a text that matches [0-9]{5} as a whole, found '12345\\n'",)),
    ],
)  # fmt: skip
async def test_all_problems_are_reported_with_their_paths(arguments: dict[str, Any], problems: tuple[str, ...]) -> None:
    assert forecast.check(arguments) == problems


@rows("is_async", [True, False])
async def test_s5_4_an_exception_is_the_content_of_an_error_result(is_async: bool) -> None:
    async def fail_async() -> str:
        """Fail."""
        raise RuntimeError("disk on fire")

    def fail_in_thread() -> str:
        """Fail."""
        raise RuntimeError("disk on fire")

    result = await (tool(fail_async) if is_async else tool(fail_in_thread)).run({})

    assert result == ToolResult("disk on fire", is_error=True)


@rows(
    ("error", "text"),
    [
        (KeyError(), "KeyError"),
        (SystemExit("leaving"), "leaving"),
        (ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [ValueError("two")])]), "one; two"),
        (ValueError("\ud800"), "?"),
    ],
)
async def test_every_error_has_a_text(error: BaseException, text: str) -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise error

    assert (await fail.run({})).text == text


async def test_a_tool_returns_text_or_a_result_and_nothing_else() -> None:
    @tool
    async def answer(wrong: bool) -> Any:
        """Answer."""
        return 42 if wrong else ToolResult("42", details={"n": 42})

    assert await answer.run({"wrong": False}) == ToolResult("42", details={"n": 42})
    assert await answer.run({"wrong": True}) == ToolResult(
        "tool 'answer' returned int; return str or ToolResult", is_error=True
    )


async def test_a_timeout_of_the_tool_is_an_error_result() -> None:
    @tool(timeout=0.05)
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return "never"

    @tool
    async def give_up() -> str:
        """Give up."""
        raise TimeoutError("the server said nothing")

    assert await wait.run({}) == ToolResult("timed out after 0.05 seconds", is_error=True)
    assert (await give_up.run({})).text == "the server said nothing"


async def test_cancellation_passes_through_and_abandons_a_blocked_thread() -> None:
    started, release, after = anyio.Event(), threading.Event(), threading.Event()

    @tool
    def block(context: ToolContext) -> str:
        """Block."""
        context.progress("blocked")
        release.wait(10)
        after.set()
        return "late"

    async with anyio.create_task_group() as group:
        group.start_soon(block.run, {}, ToolContext(progress=lambda _: started.set()))
        await started.wait()
        begun = anyio.current_time()
        group.cancel_scope.cancel()

    assert anyio.current_time() - begun < 0.5
    release.set()
    assert await anyio.to_thread.run_sync(after.wait, 5)


async def test_a_quick_tool_runs_where_it_is_called() -> None:
    threads: list[threading.Thread] = []

    @tool(quick=True)
    def look(depth: int, context: ToolContext) -> str:
        """Look."""
        threads.append(threading.current_thread())
        context.progress("looking")
        return str(1 // depth)

    seen: list[str] = []
    context = ToolContext("a", seen.append)

    assert await look.run({"depth": 1}, context) == look.run_now({"depth": 1}) == ToolResult("1")
    assert (await look.run({"depth": 0})).is_error
    assert (await look.run({"depth": "deep"})).text.startswith("invalid arguments: depth")
    assert set(threads) == {threading.current_thread()}
    assert seen == ["looking"]


async def test_a_tool_that_can_wait_is_not_quick() -> None:
    async def look() -> str:
        """Look."""
        return ""

    def listen() -> str:
        """Listen."""
        return ""

    with pytest.raises(TypeError, match="look must be synchronous"):
        tool(quick=True)(look)
    with pytest.raises(TypeError, match="cannot have a timeout"):
        tool(quick=True, timeout=1.0)(listen)


async def test_progress_of_a_blocking_tool_arrives_in_the_event_loop() -> None:
    pieces: list[tuple[str, threading.Thread]] = []

    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        context.progress("half")
        return "done"

    await work.run({}, ToolContext(progress=lambda text: pieces.append((text, threading.current_thread()))))

    assert pieces == [("half", threading.main_thread())]


async def test_a_parameter_may_have_any_name() -> None:
    @tool
    async def odd(self: str, context: str, function: str, given: ToolContext) -> str:
        """Take odd names."""
        return self + context + function + given.call_id

    result = await odd.run({"self": "a", "context": "b", "function": "c"}, ToolContext("d"))

    assert result.text == "abcd"


async def test_the_gate_learns_paths_and_command_from_marks() -> None:
    @tool
    async def move(
        sources: Annotated[list[str], Path("delete")],
        target: Annotated[str, Path("write")],
        extra: Annotated[str, Path("read")] | None = None,
        log: Annotated[str, Path("write")] = "log.txt",
        script: Annotated[str, ShellCommand()] = "true",
    ) -> str:
        """Move files."""
        return "moved"

    assert move.touches({"sources": ["a"], "target": "c", "log": "l"}) == (
        Touch("a", "delete"), Touch("c", "write"), Touch("l", "write")
    )  # fmt: skip
    assert move.command({"sources": [], "target": "c"}) == "true"
    assert move.touches({"sources": 5}) == (Touch("log.txt", "write"),)


async def test_a_function_gets_the_paths_that_were_judged_wherever_the_process_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, here = tmp_path / "workspace", tmp_path / "here"
    for folder in (workspace, here):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    monkeypatch.chdir(here)

    @tool(category="read", quick=True)
    def show(context: ToolContext, files: Annotated[list[str], Path("read")]) -> str:
        """Show files."""
        return " ".join([context.workspace, *(pathlib.Path(file).read_text() for file in files)])

    @tool(category="read")
    def show_one(context: ToolContext, file: Annotated[str, Path("read")] = "a.txt") -> str:
        """Show a file."""
        return f"{context.workspace} {pathlib.Path(file).read_text()}"

    outside = call("show_one", file=str(here / "a.txt"))
    steps: list[Step] = [[call("show", files=["a.txt", "./a.txt"]), call("show_one"), outside], "Done."]
    run = await Agent(ScriptedModel(steps), [show, show_one], workspace=workspace).run("Show")

    texts = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert texts[:2] == [f"{workspace} workspace workspace", f"{workspace} workspace"]
    assert "outside the workspace" in texts[2]


def undocumented(a: int) -> str:
    return str(a)


def unannotated(a) -> str:  # type: ignore[no-untyped-def]
    """Have no annotation."""
    return str(a)


def strange(a: object) -> str:
    """Have an annotation without a schema."""
    return str(a)


def open_ended(*a: int) -> str:
    """Take anything."""
    return str(a)


def misdescribed(a: int) -> str:
    """Describe a parameter that is not there.

    Args:
        b: not there
    """
    return str(a)


def misfit(a: Annotated[int, Limits(pattern="x")]) -> str:
    """Have a limit that does not fit."""
    return str(a)


@frozen
class Checked:
    size: int = field(validator=validators.gt(0))


def validated(a: Checked) -> str:
    """Have a check that no schema tells."""
    return str(a)


@rows(
    ("function", "complaint"),
    [
        (undocumented, "tool 'undocumented' has no docstring"),
        (unannotated, "tool 'unannotated': parameter 'a' has no annotation"),
        (strange, "tool 'strange': parameter 'a': .*use str, int"),
        (open_ended, "parameter 'a' cannot be given by name"),
        (misdescribed, "describes b, but has no such parameter"),
        (misfit, "its limits do not fit the type integer"),
        (validated, "Checked.size has a validator"),
    ],
)
async def test_what_a_model_cannot_be_told_is_refused_where_it_is_defined(function: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        tool(function)


NAMES = st.sampled_from(["a", "b", "c"])
PLAIN = st.sampled_from([str, int, float, bool, None])
LITERALS = st.lists(st.sampled_from(["a", "b", "", 0, 1, True, False, None]), min_size=1, max_size=3).map(
    lambda values: Literal[tuple(values)]
)
LIMITED = st.one_of(
    st.builds(lambda low, high: Annotated[int, Limits(minimum=low, maximum=high)], *[st.integers(-3, 3)] * 2),
    st.builds(lambda low: Annotated[float, Limits(above=low)], st.integers(-3, 3)),
    st.builds(lambda longest: Annotated[str, Limits(max_length=longest)], st.integers(0, 3)),
    st.sampled_from([r"a+", r"\d?", r"a|b", r"^ab$", r"[^a]*"]).map(lambda text: Annotated[str, Limits(pattern=text)]),
)


def made_record(kinds: Mapping[str, Any], optional: bool) -> type:
    fields = {
        name: field(type=kind or type(None), default=None if optional and name == "b" else NOTHING, kw_only=True)
        for name, kind in kinds.items()
    }
    return make_class("Made", fields, frozen=True)


def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: Annotated[list[kind], Limits(max_length=2)]),  # type: ignore[valid-type]
        inner.map(lambda kind: tuple[kind, ...]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        st.lists(inner, min_size=2, max_size=3).map(lambda kinds: Union[tuple(kinds)]),  # noqa: UP007
        st.builds(made_record, st.dictionaries(NAMES, inner, max_size=3), st.booleans()),
    )


ANNOTATIONS = st.recursive(PLAIN | LITERALS | LIMITED, wider, max_leaves=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.0, 1.0, -2.0, 0.5, 1e300])
    | st.sampled_from(["", "a", "aa", "b", "ab", "1", "a\n", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: Any) -> st.SearchStrategy[Any]:
    """Values that probably fit `schema`, so that both answers are common."""
    match schema:
        case {"anyOf": choices}:
            return st.one_of([fitting(choice) for choice in choices])
        case {"enum": values}:
            return st.sampled_from(values)
        case {"type": "array", "items": items}:
            return st.lists(fitting(items), max_size=3)
        case {"properties": named}:
            return st.fixed_dictionaries({name: fitting(part) for name, part in named.items()})
        case {"additionalProperties": part}:
            return st.dictionaries(NAMES, fitting(part), max_size=2)
        case _:
            return VALUES


@pytest.mark.slow
@given(st.data())
@settings(max_examples=600, deadline=None)
def test_what_the_schema_accepts_the_code_accepts_and_the_other_way_round(data: st.DataObject) -> None:
    shape = find_shape(data.draw(ANNOTATIONS, "annotation"))
    schema = shape.schema()
    value = data.draw(fitting(schema) | VALUES, "value")

    problems = list(shape.problems(value, "x"))

    judge = jsonschema_rs.Draft202012Validator(schema)
    assert (not problems) == judge.is_valid(value), problems
    if not problems:
        shape.build(value)


def test_the_answer_to_an_unknown_tool_names_what_there_is() -> None:
    names = ("bash", "read_file", "write_file", "list_directory")

    assert explain_unknown("bsh", names) == "unknown tool 'bsh'; nearest: bash"
    assert explain_unknown("xyz", ("bash",)) == "unknown tool 'xyz'; known: bash"
    assert explain_unknown("xyz", ()) == "unknown tool 'xyz'; known: none"
