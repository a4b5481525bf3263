"""Tools with which a model tracks its work: a todo list (S2), and an objective to complete (S1)."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from attrs import asdict, evolve, frozen

from agent.tools.definition import PerAgent, Tool, tool
from agent.vocabulary.events import ToolFinished
from agent.vocabulary.messages import ToolResult

_OPEN = ("pending", "in_progress")


@frozen
class TodoItem:
    """One task."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    priority: Literal["high", "medium", "low"]


class TodoStore:
    """Holds the list of each agent, at first `todos`; tools that share a store share it."""

    def __init__(self, todos: Sequence[TodoItem] = ()) -> None:
        self._lists = PerAgent(lambda: [*todos])

    @property
    def todos(self) -> tuple[TodoItem, ...]:
        """The list of the agent that runs."""
        return tuple(self._lists.own)

    @todos.setter
    def todos(self, todos: Sequence[TodoItem]) -> None:
        self._lists.own[:] = todos


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

    def restore(written: ToolFinished) -> None:
        if not written.result.is_error:
            held.todos = tuple(TodoItem(**todo) for todo in written.result.details.get("todos", ()))

    return todoread, evolve(todowrite, restores=restore)


def _tell(todos: Sequence[TodoItem]) -> ToolResult:
    items: list[dict[str, Any]] = [asdict(todo) for todo in todos]
    incomplete = sum(todo.status in _OPEN for todo in todos)
    text = json.dumps({"todos": items, "incompleteCount": incomplete}, indent=2, ensure_ascii=False)
    return ToolResult(text, details={"todos": items, "incompleteCount": incomplete})


@tool(category="read")
async def pursue_objective(user_prompt: str, objective: str) -> str:
    """Begin to work autonomously on an objective that takes several steps.

    From then on the run goes on until you call `complete`; a text alone does not end it. Before each of your turns you
    are shown where you stand.

    Args:
        user_prompt: what the user asked for, in the user's words
        objective: what you will pursue, in your own words
    """
    return "You are in the agentic loop now. Work on the objective, and call complete when it is done or impossible."


@tool(category="read")
async def complete(result: str, status: Literal["success", "failure", "partial"]) -> ToolResult:
    """End the work: say what was accomplished. Nothing else of this turn is carried out after it.

    Args:
        result: a summary of what was accomplished, for the user
        status: success; partial when something is missing; failure when the objective cannot be reached
    """
    return ToolResult(result, details={"status": status})


def objective_tools(*, complete_tool: bool, objective_tool: bool) -> tuple[Tool, ...]:
    """Return the objective tools that a preset with these options needs."""
    begin = (pursue_objective,) if objective_tool else ()
    return (*begin, complete) if complete_tool or objective_tool else ()
