"""A declared tool as a tool: its program runs in the workspace, without a shell (S6.7, S6.8, S6.13)."""

import os
from typing import Any

from agent.tools.declared.declaration import Declaration, expand_environment
from agent.tools.definition import Tool, ToolContext
from agent.tools.environment import tool_environment
from agent.tools.process import run_process
from agent.tools.shell.options import ShellOptions
from agent.tools.shell.telling import details_of, tell
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolResult

__all__ = ["make_declared_tool"]


def make_declared_tool(declaration: Declaration, workspace: Workspace, options: ShellOptions | None = None) -> Tool:
    """Return the tool that a declaration describes; of `options` the time, the output and the environment count."""
    how = options or ShellOptions()

    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        output = how.retention.collector()
        declared = expand_environment(declaration.env, os.environ)
        finished = await run_process(
            declaration.argv(arguments),
            cwd=workspace.root,
            env={**os.environ, **declared} if how.inherit else tool_environment(declared),
            timeout=how.timeout,
            output=output,
            progress=context.progress,
        )
        told = tell(finished, how.timeout, how)
        return ToolResult(told.text, told.is_error, {**details_of(finished), **output.details()})

    return Tool(
        name=declaration.name,
        description=declaration.description,
        shape=declaration.parameters,
        function=run,
        category=declaration.category,
        workspace=workspace,
        argv=declaration.argv,
        source=declaration.source,
    )
