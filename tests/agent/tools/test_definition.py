"""A function with annotations and a docstring is a tool, and a blocking one keeps no caller waiting."""

import asyncio
import dataclasses
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from functools import partial, wraps
from typing import Annotated, Any, Literal, Required, TypedDict
from uuid import UUID

import anyio
import jsonschema_rs
import pytest
from anyio.lowlevel import current_token
from attrs import field, frozen, validators

from agent import Agent, ScriptedModel, call
from agent.effects.loop import Hooks
from agent.models.scripted import Step
from agent.tools.blocking import DISCARDED, call_back, run_in_background
from agent.tools.definition import ToolContext, explain_unknown, tool
from agent.tools.schemas import Limits, Path, ShellCommand, ToolSchema, Touch, find_shape
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import ToolMessage, ToolResult
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


def test_the_schema_comes_from_annotations_and_docstring() -> None:
    properties: Any = forecast.parameters["properties"]

    assert (forecast.name, forecast.category, forecast.parallel) == ("forecast", "read", True)
    assert forecast.description == "Forecast the weather.\n\nFor any place on Earth."
    assert forecast.schema() == ToolSchema("forecast", forecast.description, forecast.parameters)
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


ULM = {"city": "Ulm"}


@rows(
    ("arguments", "problems"),
    [
        ({}, ""),
        ({"place": "Ulm"}, "place: expected an object, found 'Ulm'"),
        (
            {"place": {"town": "Ulm", "zip_code": "8907x"}, "days": 8},
            "place.city: missing; place.zip_code: expected a text that matches [0-9]{5} as a whole, found '8907x'; "
            "place.town: unknown; use city, zip_code; days: expected at most 7, found 8",
        ),
        ({"days": True}, "days: expected an integer, found true"),
        ({"days": "2"}, "days: expected an integer, found '2'"),
        ({"days": 2.5}, "days: expected an integer, found 2.5"),
        ({"days": None}, "days: expected an integer, found null; leave it out"),
        ({"unit": "F"}, "unit: expected one of 'C', 'K'; found 'F'"),
        ({"tags": ["a", 5]}, "tags[1]: expected a string, found 5"),
        ({"options": {"verbose": 1}}, "options.verbose: expected a boolean, found 1"),
        ({"place": {**ULM, "zip_code": "12345\n"}},
         "place.zip_code: expected a text that matches [0-9]{5} as a whole, found '12345\\n'"),
    ],
)  # fmt: skip
def test_all_problems_are_reported_with_their_paths(arguments: dict[str, Any], problems: str) -> None:
    assert "; ".join(forecast.check({"place": ULM, **arguments})) == problems
    assert forecast.check({}) == ("place: missing",)


@rows(
    ("error", "text"),
    [
        (RuntimeError("disk on fire"), "disk on fire"),
        (KeyError(), "KeyError"),
        (SystemExit("leaving"), "leaving"),
        (GeneratorExit(), "GeneratorExit"),
        (type("Panic", (BaseException,), {})("in a library"), "in a library"),
        (BaseExceptionGroup("several", [GeneratorExit("one"), ValueError("two")]), "one; two"),
        (ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [ValueError("two")])]), "one; two"),
        (ValueError("\ud800"), "?"),
    ],
)
async def test_s5_4_an_exception_is_the_content_of_an_error_result(error: BaseException, text: str) -> None:
    async def fail_async() -> str:
        """Fail."""
        raise error

    def fail_in_thread() -> str:
        """Fail."""
        raise error

    for failing in (tool(fail_async), tool(fail_in_thread), tool(quick=True)(fail_in_thread)):
        assert await failing.run({}) == ToolResult(text, is_error=True)


@dataclass
class Order:
    article: str
    on: date


RUN = "the call has run, but 'answer' returned no text, JSON or ToolResult: "


@rows(
    ("returned", "text"),
    [
        (ToolResult("42", details={"n": 42}), "42"),
        ("as it is", "as it is"),
        (42, "42"),
        (None, "null"),
        ({"articles": ["é", (1, 2.5, True)]}, '{"articles": ["é", [1, 2.5, true]]}'),
        ([Order("pear", date(2026, 1, 2))], '[{"article": "pear", "on": "2026-01-02"}]'),
        (Place("Here"), '{"city": "Here", "zip_code": null}'),
        *((wrong, RUN) for wrong in (object(), {"at": object()}, {(1, 2): 3})),
    ],
)
async def test_a_tool_returns_text_a_result_or_data_that_the_model_reads_as_json(returned: Any, text: str) -> None:
    @tool
    async def answer() -> Any:
        """Answer."""
        return returned

    result = await answer.run({})

    assert result.text.startswith(text)
    assert result.is_error is (text is RUN)


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

    assert await wait.run({}) == ToolResult("timed out after 0.05 seconds; its outcome is unknown", is_error=True)
    assert (await give_up.run({})).text == "the server said nothing"


async def test_a_blocking_tool_that_timed_out_may_still_run_and_its_late_result_is_discarded_and_counted() -> None:
    release, threads, before = threading.Event(), list[threading.Thread](), len(DISCARDED)

    @tool(timeout=0.05)
    def pay() -> str:
        """Pay."""
        threads.append(threading.current_thread())
        release.wait(100)
        return "paid"

    result = await pay.run({})
    release.set()
    threads[0].join(100)

    text = "timed out after 0.05 seconds; it may still be running, and its outcome is unknown"
    assert result == ToolResult(text, is_error=True)
    assert len(DISCARDED) == before + 1


tenant = ContextVar("tenant", default="nobody")


def name_tenant() -> str:
    """Name the tenant."""
    return tenant.get()


async def name_tenant_later() -> str:
    """Name the tenant."""
    return tenant.get()


async def test_the_callers_context_reaches_every_tool_and_hook() -> None:
    tools = [
        tool(name_tenant), tool(name_tenant_later), tool(name="at_once", quick=True)(name_tenant),
        tool(name="traced", timeout=9)(traced(name_tenant_later)),
    ]  # fmt: skip
    keys = list[str]()
    hooks = Hooks(get_api_key=lambda: keys.append(tenant.get()), transform_context=lambda sent: [*sent[:0], *sent])
    agent = Agent(ScriptedModel([[call(each.name) for each in tools], "Done."]), tools, hooks=hooks)
    tenant.set("ada")
    run = await agent.run("Who?")

    assert [message.text for message in run.messages if isinstance(message, ToolMessage)] == ["ada"] * 4
    assert keys == ["ada", "ada"]


async def test_a_blocking_tool_may_start_an_event_loop_of_its_own() -> None:
    @tool
    def count() -> int:
        """Count."""
        return anyio.run(anyio.sleep, 0) or asyncio.run(asyncio.sleep(0, 5))

    assert (await count.run({})).text == "5"


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function plainly."""

    @wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper


async def charge(amount: int, account: str = "") -> str:
    """Charge an account.

    Args:
        account: whose
    """
    await anyio.sleep(0)
    return f"{amount} {account}"


class Charge:
    """Charge an account."""

    async def __call__(self, amount: int, account: str = "") -> str:
        return await charge(amount, account)

    async def method(self, amount: int, account: str = "") -> str:
        """Charge an account."""
        return await self(amount, account)


@rows(
    ("function", "name", "text"),
    [
        (traced(charge), "charge", "5 "),
        (traced(traced(charge)), "charge", "5 "),
        (partial(charge, account="ada"), "charge", "5 ada"),
        (partial(partial(traced(charge)), account="ada"), "charge", "5 ada"),
        (traced(Charge().method), "method", "5 "),
        (Charge(), "Charge", "5 "),
        (partial(Charge(), account="ada"), "Charge", "5 ada"),
    ],
)
async def test_an_async_function_behind_a_decorator_a_partial_or_an_object_is_awaited(
    function: Any, name: str, text: str
) -> None:
    """What a partial binds, the model cannot give."""
    made = tool(function)
    bound = "ada" in text

    assert (made.name, made.description.splitlines()[0]) == (name, "Charge an account.")
    assert await made.run({"amount": 5}) == ToolResult(text)
    assert (await made.run({"amount": 5, "account": "bob"})).is_error is bound


async def test_a_generator_is_refused_or_not_said_to_have_run() -> None:
    def count() -> Any:
        """Count."""
        yield 1

    async def count_later() -> Any:
        """Count."""
        yield 1

    for function in (count, count_later):
        with pytest.raises(
            TypeError, match=f"tool '{function.__name__}' is a generator, which would never run; return"
        ):
            tool(function)
        result = await tool(traced(function)).run({})
        assert result.is_error
        assert result.text.startswith(f"the call has not run: '{function.__name__}' returned no text")


@rows("quick", [True, False])
async def test_a_blocking_tool_runs_in_a_daemon_thread_and_a_quick_one_where_it_is_called(quick: bool) -> None:
    """Its progress arrives in the event loop."""
    threads: list[threading.Thread] = []
    seen: list[tuple[str, threading.Thread]] = []

    @tool(quick=quick)
    def look(depth: int, context: ToolContext) -> str:
        """Look."""
        threads.append(threading.current_thread())
        context.progress("looking")
        return str(1 // depth)

    context = ToolContext("a", lambda text: seen.append((text, threading.current_thread())))

    assert await look.run({"depth": 1}, context) == ToolResult("1")
    assert (await look.run({"depth": 0})).is_error
    assert (await look.run({"depth": "deep"})).text.startswith("invalid arguments: depth")
    assert [thread is threading.main_thread() for thread in threads] == [quick] * 2
    assert [thread.daemon for thread in threads] == [not quick] * 2
    assert seen == [("looking", threading.main_thread())]


def test_a_tool_that_can_wait_is_not_quick() -> None:
    async def look() -> str:
        """Look."""
        return ""

    with pytest.raises(TypeError, match="look must be synchronous"):
        tool(quick=True)(look)
    with pytest.raises(TypeError, match="look must be synchronous"):
        tool(quick=True)(traced(look))
    with pytest.raises(TypeError, match="cannot have a timeout"):
        tool(quick=True, timeout=1.0)(documented)


def test_the_gate_learns_paths_and_command_from_marks() -> None:
    @tool
    def move(
        sources: Annotated[list[str], Path("delete")],
        target: Annotated[str, Path("write")],
        log: Annotated[str, Path("write")] | None = "log.txt",
        script: Annotated[str, ShellCommand()] = "true",
    ) -> str:
        """Move files."""
        return "moved"

    touches = move.touches({"sources": ["a"], "target": "c", "log": "l"})
    assert touches == (Touch("a", "delete"), Touch("c", "write"), Touch("l", "write"))
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
    assert "which is outside" in texts[2]


def documented(a: int) -> str:
    """Have all that a tool needs."""
    return str(a)


def undocumented(a: int) -> str:
    return str(a)


def unannotated(a) -> str:  # type: ignore[no-untyped-def]
    """Have no annotation."""
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


@frozen
class Checked:
    size: int = field(validator=validators.gt(0))


class Drawing:
    pass


class Keys(TypedDict, total=False):
    city: Required[Annotated[str, "where"]]
    zip_code: str


@dataclass
class Visit:
    city: str
    zip_code: str = ""
    a: list[int] = dataclasses.field(default_factory=list)


@rows(
    ("annotation", "given", "value"),
    [
        (Any, {"a": [1, None]}, {"a": [1, None]}),
        (dict, {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": {"b": []}}, {"a": {"b": []}}),
        (list, [1, "a"], [1, "a"]),
        (set[int], [1, 2, 1], {1, 2}),
        (frozenset[str], ["a"], frozenset("a")),
        (date, "2026-01-31", date(2026, 1, 31)),
        (datetime | None, "2026-01-31T08:30:00Z", datetime(2026, 1, 31, 8, 30, tzinfo=UTC)),
        (UUID, "123e4567-e89b-12d3-a456-426614174000", UUID(int=0x123E4567E89B12D3A456426614174000)),
        (Visit, {"city": "Ulm"}, Visit("Ulm")),
        (Keys, {"city": "Ulm"}, {"city": "Ulm"}),
        (list[Visit], [{"city": "Ulm", "a": [1]}], [Visit("Ulm", "", [1])]),
        (dict[str, date], {"a": "2026-01-31"}, {"a": date(2026, 1, 31)}),
    ],
)
async def test_a_function_gets_the_values_of_its_annotations(annotation: Any, given: Any, value: Any) -> None:
    got = []

    def take(a: Any) -> str:
        """Take it."""
        got.append(a)
        return ""

    take.__annotations__ = {"a": annotation, "return": str}
    taken = tool(take)
    frozen_call = ToolCall("c", "take", {"a": given})
    results = [await taken.run({"a": given}), await taken.run(frozen_call.arguments)]

    assert [result.text for result in results] == ["", ""]
    assert got == [value, value]
    assert type(got[0]) is type(got[1]) is type(value)


@rows(
    ("annotation", "given", "problem"),
    [
        (date, "31.1.2026", "a: expected a date such as 2026-01-31, found '31.1.2026'"),
        (date, 5, "a: expected a string, found 5"),
        (UUID, "1", "a: expected a uuid such as 123e4567-e89b-12d3-a456-426614174000, found '1'"),
        (Keys, {}, "a.city: missing"),
        (Visit, {"city": "Ulm", "b": 1}, "a.b: unknown; use city, zip_code, a"),
        (dict, [], "a: expected an object, found an array of 0 elements"),
    ],
)
def test_a_value_that_does_not_fit_is_told(annotation: Any, given: Any, problem: str) -> None:
    assert tool(typed(annotation)).check({"a": given}) == (problem,)


def typed(annotation: Any, returned: Any = str) -> Any:
    """Return a function whose parameter and result have these annotations."""

    def take(a: Any) -> Any:
        """Take it."""
        return str(a)

    take.__annotations__ = {"a": annotation, "return": returned}
    return take


def test_a_category_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match=r"@tool\(category='reads'\): a category is one of read, write, admin"):
        tool(category="reads")(open_ended)  # type: ignore[call-overload]


@rows(
    ("function", "complaint"),
    [
        (undocumented, "tool 'undocumented' has no docstring"),
        (unannotated, "tool 'unannotated': parameter 'a' has no annotation"),
        (typed(object), "tool 'take': parameter 'a': .*use str, int"),
        (typed(pathlib.Path), r"parameter 'a': .*say what the tool does there, as in Annotated\[str, Path"),
        (typed(tuple[int]), "has a length of its own"),
        (typed(tuple[()]), "has a length of its own"),
        (open_ended, "parameter 'a' cannot be given by name"),
        (misdescribed, "describes b, but has no such parameter"),
        (typed(Annotated[int, Limits(pattern="x")]), "its limits do not fit the type integer"),
        (typed(Checked), "Checked.size has a validator"),
        (typed(int, list[Drawing] | None),
         "tool 'take': a model cannot be shown the Drawing that it returns; return text, a ToolResult"),
    ],
)  # fmt: skip
def test_a_tool_without_a_schema_for_models_is_refused_where_it_is_defined(function: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        tool(function)


ANNOTATIONS: list[Any] = [
    str, int, float, bool, None, Unit, Place, Options, Literal["a", 1, True, None], Literal[0, False], int | None,
    list[int], tuple[str, ...], dict[str, int | bool], list[Place] | dict[str, str], int | list[int | str],
    Annotated[int, Limits(minimum=-1, maximum=2)], Annotated[float, Limits(above=0)] | None,
    Annotated[str, Limits(max_length=2)], Annotated[str, Limits(pattern=r"a+|\d?")],
    Annotated[list[str], Limits(max_length=1)],
    list[Annotated[str, Limits(pattern="^ab$")]] | Annotated[int, Limits(maximum=0)],
    Any, list, dict, dict[str, Any], set[int], frozenset[str], tuple, Visit, Keys, list[Visit | Keys],
]  # fmt: skip
SIMPLE: list[Any] = [
    None, True, False, -1, 0, 1, 4, 0.0, 1.0, 0.5, 1e300, "", "a", "aa", "aaa", "ab", "1", "C", "a\n", "é",
]  # fmt: skip
VALUES = [
    *SIMPLE, [], {}, *([value] for value in SIMPLE), *({"a": value} for value in SIMPLE), ["a", "b"], [0, "a"], [[1]],
    [{"city": "a"}], {"city": "a"}, {"city": "a", "zip_code": "12345"}, {"city": "a", "zip_code": 1}, {"city": 1},
    {"verbose": True}, {"verbose": True, "depth": -1}, {"verbose": 1, "more": 2}, {"a": {"a": 1}},
]  # fmt: skip


def test_the_schema_and_the_code_accept_the_same_arguments() -> None:
    wrong = []
    for annotation in ANNOTATIONS:
        shape = find_shape(annotation)
        judge = jsonschema_rs.Draft202012Validator(shape.written)
        for value in VALUES:
            fits = not list(shape.problems(value))
            if fits != judge.is_valid(value):
                wrong.append((annotation, value))
            elif fits:
                shape.build(value)

    assert wrong == []
    assert list(find_shape(float).problems(float("nan"))) != []


def test_the_answer_to_an_unknown_tool_names_what_there_is() -> None:
    assert explain_unknown("bsh", ("bash", "read_file")) == "unknown tool 'bsh'; nearest: bash"
    for prefixed in ("functions.bash", "default_api:bash", "functions.bash:0"):
        assert explain_unknown(prefixed, ("bash", "fish")) == f"unknown tool {prefixed!r}; nearest: bash"
    assert explain_unknown("xyz", ("bash",)) == "unknown tool 'xyz'; known: bash"
    assert explain_unknown("xyz", ()) == "unknown tool 'xyz'; known: none"


@pytest.mark.slow
def test_an_abandoned_function_may_end_after_the_event_loop(anyio_backend: str) -> None:
    release, threads = threading.Event(), []

    def block(report: Callable[[str], None]) -> None:
        threads.append(threading.current_thread())
        report("begun")
        release.wait(1000)
        report("nobody hears this")

    async def main() -> None:
        begun = anyio.Event()
        report = call_back(lambda _: begun.set(), current_token())
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_background, lambda: block(report))
            await begun.wait()
            group.cancel_scope.cancel()

    anyio.run(main, backend=anyio_backend)
    release.set()
    threads[0].join(100)

    assert not threads[0].is_alive()


SCRIPT = """
import anyio, os, sys, threading, warnings
from agent.tools.blocking import run_in_background
warnings.simplefilter("ignore")  # of a fork beside threads
async def main():
    with anyio.move_on_after(0.1):
        await run_in_background(threading.Event().wait)
    return await run_in_background(os.getpid)
parent = anyio.run(main, backend=sys.argv[1])
if os.fork():
    os.wait()
else:
    print(anyio.run(main, backend=sys.argv[1]) == os.getpid() != parent, flush=True)
"""


@pytest.mark.slow
def test_a_function_that_never_returns_keeps_no_program_alive_and_a_fork_has_its_own_threads(
    anyio_backend: str,
) -> None:
    argv = [sys.executable, "-c", SCRIPT, anyio_backend]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=True)

    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_threads_are_used_again_and_end_and_functions_do_not_wait_for_abandoned_ones(anyio_backend: str) -> None:
    release = threading.Event()

    async def main() -> list[threading.Thread]:
        with anyio.move_on_after(0.05):
            await run_in_background(release.wait)
        with pytest.raises(ZeroDivisionError):
            await run_in_background(lambda: 1 // 0)
        return [await run_in_background(threading.current_thread) for _ in range(100)]

    threads = anyio.run(main, backend=anyio_backend)
    release.set()
    for thread in threads:
        thread.join(5)

    assert len(set(threads)) < 50
    assert not any(thread.is_alive() for thread in threads)
