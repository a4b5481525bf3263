"""The tools `todoread` and `todowrite`: a list of tasks that a model keeps for itself (S2)."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from attrs import asdict, frozen

from agent.tools.definition import Tool, tool
from agent.vocabulary.calls import ToolResult

__all__ = ["TodoItem", "TodoStore", "make_todo_tools"]

_OPEN = ("pending", "in_progress")


@frozen
class TodoItem:
    """One task."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"]


class TodoStore:
    """Holds the list; tools that share a store share it."""

    def __init__(self, todos: Sequence[TodoItem] = ()) -> None:
        self.todos: tuple[TodoItem, ...] = tuple(todos)


def make_todo_tools(store: TodoStore | None = None) -> tuple[Tool, Tool]:
    """Return `todoread` and `todowrite` over a store, by default a new one."""
    held = TodoStore() if store is None else store

    @tool(category="read")
    def todoread() -> ToolResult:
        """Read your list of tasks: content, status and priority of each, and how many are not done yet."""
        return _tell(held.todos)

    @tool(category="read")
    def todowrite(todos: list[TodoItem]) -> ToolResult:
        """Replace your list of tasks. Give the full list each time.

        Args:
            todos: all tasks, those that are done too
        """
        held.todos = tuple(todos)
        return _tell(held.todos)

    return todoread, todowrite


def _tell(todos: Sequence[TodoItem]) -> ToolResult:
    items: list[dict[str, Any]] = [asdict(todo) for todo in todos]
    incomplete = sum(todo.status in _OPEN for todo in todos)
    text = json.dumps({"todos": items, "incompleteCount": incomplete}, indent=2, ensure_ascii=False)
    return ToolResult(text, details={"todos": items, "incompleteCount": incomplete})
