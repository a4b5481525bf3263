"""`todoread` and `todowrite` (S2)."""

import json

import pytest

from agent.tools.work import TodoItem, TodoStore, make_todo_tools

pytestmark = pytest.mark.anyio

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


async def test_tools_over_one_store_share_the_list() -> None:
    store = TodoStore()
    _, write = make_todo_tools(store)
    read, _ = make_todo_tools(store)

    await write.run({"todos": [MILK]})

    assert (await read.run({})).details["incompleteCount"] == 1
    assert (await make_todo_tools()[0].run({})).details["incompleteCount"] == 0


@pytest.mark.parametrize(
    ("todo", "problem"),
    [
        ({**MILK, "status": "done"}, "todos[0].status: expected one of 'pending', 'in_progress', "),
        ({**MILK, "priority": 1}, "todos[0].priority: expected one of 'high', 'medium', 'low'"),
        ({"content": "x"}, "todos[0].status: missing"),
        ({**MILK, "id": 1}, "todos[0].id: unknown"),
    ],
)  # fmt: skip
async def test_what_is_no_task_is_an_error_and_changes_nothing(todo: object, problem: str) -> None:
    store = TodoStore([TodoItem("a", "pending", "low")])

    result = await make_todo_tools(store)[1].run({"todos": [todo]})

    assert result.is_error
    assert problem in result.text
    assert len(store.todos) == 1
