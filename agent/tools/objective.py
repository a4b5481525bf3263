"""The tools by which an agent takes an objective of its own, and says that it is done (S1 2.3, 2.4).

They do nothing in the world: the loop hears that they ran.
"""

from typing import Literal

from agent.tools.definition import Tool, tool
from agent.vocabulary.calls import ToolResult

__all__ = ["complete", "objective_tools", "pursue_objective"]


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
    """Return those of them that a preset with these options needs."""
    begin = (pursue_objective,) if objective_tool else ()
    return (*begin, complete) if complete_tool or objective_tool else ()
