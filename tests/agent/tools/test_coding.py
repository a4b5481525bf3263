"""The collections of S2 and the executor of S3."""

import json
from pathlib import Path

import pytest

from agent import Agent, ScriptedModel, call
from agent.tools.collections import (
    BUILT_IN_TOOLS,
    CODING_TOOLS,
    READ_ONLY_TOOLS,
    CodingOptions,
    built_in_tool_schemas,
    create_all_tools,
    create_coding_tools,
    create_read_only_tools,
    create_tool_executor,
)
from agent.tools.definition import tool
from agent.tools.work import TodoItem, TodoStore, make_todo_tools
from agent.tools.workspace import Workspace
from tests.tables import rows

pytestmark = pytest.mark.anyio


async def test_s2_files_elsewhere_have_places_of_their_own(tmp_path: Path) -> None:
    """Paths are not made those of the agent's workspace, which is here."""
    for folder in (here := tmp_path / "here", elsewhere := tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    tools = create_all_tools(here, CodingOptions(files=Workspace(elsewhere)))

    run = await Agent(ScriptedModel([call("read", path="a.txt"), "Done."]), tools.values(), workspace=here).run("Read")

    assert "elsewhere" in run.messages[2].text


def test_s2_collections_are_those_of_the_specification(root: Path) -> None:
    everything = create_all_tools(root)

    assert all(name == tool.name for name, tool in everything.items())
    coding, reading = create_coding_tools(root), create_read_only_tools(root)
    assert [tool.name for tool in coding] == [name for name in CODING_TOOLS if name in everything]
    assert [tool.name for tool in reading] == [name for name in READ_ONLY_TOOLS if name in everything]
    assert {tool.category for tool in reading} == {"read"}


async def test_s2_tools_start_in_the_directory_and_reach_absolute_paths(root: Path, tmp_path: Path) -> None:
    (root / "here").write_text("here")
    (tmp_path / "there").write_text("there")
    tools = create_all_tools(root)

    assert (await tools["read"].run({"path": "here"})).text == "here"
    assert (await tools["read"].run({"path": str(tmp_path / "there")})).text == "there"
    failed = await tools["bash"].run({"command": "pwd; exit 1"})
    assert (failed.text, failed.is_error) == (f"{root}\n[exit code 1]", True)


async def test_s3_the_executor_runs_the_built_in_tools_and_times_them(root: Path) -> None:
    execute = create_tool_executor(root)

    await execute("write_file", {"path": "a.txt", "content": "hello"})

    assert (await execute("read_file", {"path": "a.txt"})).text == "hello"
    assert (await execute("list_files", {"pattern": "*.txt"})).text == "a.txt"
    done = await execute("bash", {"command": "cat a.txt; exit 2"})
    assert (done.text, done.is_error) == ("hello\n[exit code 2]", False)
    assert done.details["duration"] > 0


@rows(
    ("name", "arguments", "problem"),
    [
        ("read_fil", {}, "unknown tool 'read_fil'; nearest: read_file"),
        ("read_file", {}, "invalid arguments: path: missing"),
        ("read_file", {"path": "../x"}, "permission denied"),
        ("list_files", {"pattern": "../*"}, "leaves its directory"),
    ],
)
async def test_s3_what_goes_wrong_is_a_result(root: Path, name: str, arguments: dict[str, str], problem: str) -> None:
    result = await create_tool_executor(root)(name, arguments)

    assert result.is_error
    assert problem in result.text


async def test_s3_custom_tools_win_over_built_in_ones(root: Path) -> None:
    @tool(name="read_file")
    def mine(path: str) -> str:
        """Read nothing."""
        return f"mine: {path}"

    execute = create_tool_executor(root, [mine])

    assert (await execute("read_file", {"path": "a"})).text == "mine: a"


def test_s3_schemas_are_in_the_form_of_chat_completions() -> None:
    schemas = built_in_tool_schemas()

    assert tuple(schema["function"]["name"] for schema in schemas) == BUILT_IN_TOOLS
    assert schemas[0]["type"] == "function"
    assert schemas[0]["function"]["parameters"]["required"] == ["path"]


async def test_the_executor_runs_no_dangerous_command(root: Path) -> None:
    result = await create_tool_executor(root)("bash", {"command": "rm -rf /nonexistent-folder"})

    assert result.is_error
    assert result.text == "rejected: dangerous command: rm -rf /nonexistent-folder"


# `todoread` and `todowrite` (S2).


MILK = {"content": "Buy milk", "status": "pending", "priority": "high"}
DONE = {"content": "Write it down", "status": "completed", "priority": "low"}


async def test_the_list_is_replaced_and_read_back_with_what_is_not_done_counted() -> None:
    store = TodoStore()
    todoread, todowrite = make_todo_tools(store)

    assert json.loads((await todoread.run({})).text) == {"todos": [], "incompleteCount": 0}
    written = await todowrite.run({"todos": [MILK, DONE, {**MILK, "status": "in_progress"}]})
    read = await todoread.run({})

    assert written == read
    assert json.loads(read.text)["todos"][:2] == [MILK, DONE]
    assert read.details["incompleteCount"] == 2
    assert store.todos[0] == TodoItem("Buy milk", "pending", "high")
    assert [dict(todo) for todo in read.details["todos"]][1] == DONE
    assert json.loads((await todowrite.run({"todos": []})).text)["incompleteCount"] == 0


@rows(
    ("todo", "problem"),
    [
        ({**MILK, "status": "done"}, "todos[0].status: expected one of 'pending', 'in_progress', "),
        ({**MILK, "priority": 1}, "todos[0].priority: expected one of 'high', 'medium', 'low'"),
        ({"content": "x"}, "todos[0].status: missing"),
        ({**MILK, "id": 1}, "todos[0].id: unknown"),
    ],
)  # fmt: skip
async def test_a_wrong_task_list_is_an_error_and_changes_nothing(todo: object, problem: str) -> None:
    store = TodoStore([TodoItem("a", "pending", "low")])

    result = await make_todo_tools(store)[1].run({"todos": [todo]})

    assert result.is_error
    assert problem in result.text
    assert len(store.todos) == 1
