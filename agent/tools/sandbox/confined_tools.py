"""Tools whose commands run in a sandbox: a parameter more, by which the model asks for rights beyond it."""

from typing import Any

from attrs import evolve

from agent.tools.definition import Tool, ToolContext
from agent.tools.sandbox.sandbox import Sandbox
from agent.tools.schemas import ArrayOf, Field, Limits, Record, Rights, Scalar

__all__ = ["confined"]

PARAMETER = "rights"
WORDS = (
    "what the command needs beyond the sandbox, which has no network but the loopback and writes in the workspace and "
    "/tmp alone: {hosts}network (any host), write /ABSOLUTE/PATH, or unconfined. The user is asked. Leave it out "
    "unless it was blocked"
)
HOSTS = "network HOST (one host, by HTTP or HTTPS through the proxy that the usual variables name), "


def confined(tool: Tool, sandbox: Sandbox) -> Tool:
    """Return a tool whose commands `sandbox` confines, with the parameter `rights` where one can be granted."""
    known = evolve(tool, sandbox=sandbox.level)
    taken = not isinstance(tool.shape, Record) or any(field.name == PARAMETER for field in tool.shape.fields)
    if sandbox.strict or sandbox.level == "none" or taken:
        return known
    assert isinstance(tool.shape, Record)

    function: Any = tool.function

    async def run(context: ToolContext, /, **arguments: Any) -> object:
        arguments.pop(PARAMETER, None)
        return await function(context, **arguments)

    shape = evolve(tool.shape, fields=(*tool.shape.fields, _rights(sandbox)))
    return evolve(known, shape=shape, marks=(*tool.marks, (PARAMETER, Rights(), ())), function=run)


def _rights(sandbox: Sandbox) -> Field:
    by_host = sandbox.level == "bubblewrap"
    pattern = f"network{'( [a-z0-9][a-z0-9.:_-]*)?' if by_host else ''}|unconfined|write /.+"
    words = WORDS.format(hosts=HOSTS if by_host else "")
    text = Scalar("string", Limits(pattern=pattern, max_length=4096))
    return Field(PARAMETER, ArrayOf(text), required=False, extra=(("description", words),))
