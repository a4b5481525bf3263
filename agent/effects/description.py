"""Describe an action before it is judged: resolve on disk what it names, so that judging needs no disk."""

import os
import shlex
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AbortAsked, ActionDescribed, DeadlineReached, ProposedAction
from bp.runner import Broken, Effect
from constitution import Action, Mentions, PathUse, mentions

__all__ = ["describe", "description_effect"]


def description_effect(toolbox: Toolbox) -> Effect:
    """Return the effect of `proposed_action`."""

    async def look_up(proposed: ProposedAction) -> ActionDescribed:
        return ActionDescribed(proposed.call, describe(proposed.call, toolbox))

    return Effect(
        on=ProposedAction,
        run=look_up,
        outcome=(ActionDescribed,),
        broken=undescribed,
        until=lambda _: AbortAsked | DeadlineReached,
    )


def undescribed(proposed: ProposedAction, broken: Broken) -> ActionDescribed:
    """Return the outcome for a call of which nobody knows what it would touch."""
    call = proposed.call
    return ActionDescribed(call, Action(call.tool, call.category, "/"), problem=str(broken.error or broken.how))


def describe(call: ToolCall, toolbox: Toolbox) -> Action:
    """Return what `call` would touch. Raises OSError and ValueError for names that cannot be looked up."""
    tool = toolbox.get(call.tool)
    workspace = toolbox.workspace if tool is None or tool.workspace is None else tool.workspace
    command = None if tool is None else tool.command(call.arguments)
    touches = () if tool is None else tool.touches(call.arguments)
    argv = () if tool is None or tool.argv is None else tool.argv(call.arguments)
    cwd = workspace.root if tool is None or tool.cwd is None else tool.cwd()
    text = shlex.join(argv) if argv and command is None else command
    named = mentions(text) if text is not None else Mentions()
    return Action(
        tool=call.tool,
        category=call.category,
        workspace=workspace.root,
        cwd=cwd,
        home=_normal(os.path.expanduser("~")),
        command=command,
        argv=argv,
        paths=tuple(PathUse(touch.path, workspace.resolve(touch.path), touch.access) for touch in touches),
        resolved=_resolved(named.paths, workspace, cwd),
        urls=() if tool is None else tool.urls(call.arguments),
        executables={program: _executable(program, cwd) for program in named.programs},
    )


@lru_cache(maxsize=16)
def _normal(home: str) -> str:
    """Return the user's home as `Path.home` gives it. Raises RuntimeError where nobody knows it."""
    return str(Path(home).expanduser())


def _resolved(paths: Iterable[str], workspace: Workspace, cwd: str) -> dict[str, str]:
    """Look up the paths that a command mentions, from where it starts."""
    found = (path for path in paths if _is_resolvable(path))
    return {path: workspace.resolve(path if path.startswith("~") else os.path.join(cwd, path)) for path in found}


def _is_resolvable(path: str) -> bool:
    return "\0" not in path and len(path) < 4096


def _executable(program: str, root: str) -> str:
    if "\0" in program or len(program) >= 4096:
        return ""
    if "/" in program:
        program = os.path.join(root, os.path.expanduser(program))
    return os.path.realpath(found) if (found := shutil.which(program)) else ""
