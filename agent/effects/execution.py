"""Describe a call before it is judged, run it when it was approved, and pass its output on while it runs."""

import os
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, TypeVar

import anyio
from attrs import evolve

from agent.effects.snapshots import Keeper
from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, Toolbox, ToolContext, ignore
from agent.tools.output import outputs_folder
from agent.tools.sandbox.permissions import agents_own, needed_for, own_processes
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    DeadlineReached,
    ProposedAction,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult
from bp.runner import Broken, Effect
from constitution import Action, PathUse, commands_of, effects_of
from constitution import Effect as ActionEffect
from constitution.places import is_within

OVER = AbortAsked | DeadlineReached  # one object, so that the runner evaluates it once for all calls under way
INTERVAL = 0.05  # seconds between two pieces that a watcher sees
MOST_SHOWN = 256 * 1024  # characters of a piece

Watcher = Callable[[str], None]
Part = TypeVar("Part")
Joined = TypeVar("Joined")


def join_texts(pieces: Iterable[str]) -> tuple[str]:
    """Join pieces of text; of a very long one the end is kept."""
    text = "".join(pieces)
    left_out = max(0, len(text) - MOST_SHOWN)
    return (f"[{left_out} characters left out]\n{text[left_out:]}" if left_out else text,)


@asynccontextmanager
async def coalesced(
    watcher: Callable[[Joined], None], join: Callable[[Iterable[Part]], Iterable[Joined]]
) -> AsyncIterator[Callable[[Part], None]]:
    """Yield a function that takes pieces; `watcher`, which must not raise, gets them joined by `join`."""
    pieces: list[Part] = []
    failure: Exception | None = None

    def show() -> None:
        if pieces:
            parts = tuple(pieces)
            pieces.clear()
            for joined in join(parts):
                watcher(joined)

    async def show_now_and_then() -> None:
        while True:
            await anyio.sleep(INTERVAL)
            show()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(show_now_and_then)
        try:
            yield pieces.append
        except Exception as error:  # kept out of the task group, which would make a group of it
            failure = error
        finally:
            show()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def description_effect(toolbox: Toolbox) -> Effect:
    """Return the effect of `proposed_action`. What takes a while does not block the event loop."""

    def look_up(proposed: ProposedAction) -> ActionDescribed | Awaitable[ActionDescribed]:
        def described() -> ActionDescribed:
            return ActionDescribed(proposed.call, describe(proposed.call, toolbox))

        return run_in_background(described) if toolbox.changes_files(proposed.call) else described()

    def undescribed(proposed: ProposedAction, broken: Broken) -> ActionDescribed:
        return ActionDescribed(proposed.call, *unknown_facts(proposed.call, broken))

    return Effect(ProposedAction, look_up, (ActionDescribed,), undescribed, OVER)


def unknown_facts(call: ToolCall, broken: Broken) -> tuple[Action, str]:
    """Return the facts of a call that cannot be looked up, and the problem."""
    return Action(call.tool, call.category, "/"), str(broken.error or broken.how)


def describe(call: ToolCall, toolbox: Toolbox) -> Action:
    """Return what `call` would touch. Raises OSError and ValueError for names that cannot be looked up."""
    tool = toolbox.get(call.tool)
    workspace = toolbox.workspace if tool is None or tool.workspace is None else tool.workspace
    cwd = workspace.root if tool is None or tool.cwd is None else tool.cwd()
    facts = _places(call.tool, call.category, workspace.root, cwd, toolbox.home)
    if tool is None:
        return facts
    if tool.sandbox or tool.opaque:
        facts = evolve(facts, sandbox=tool.sandbox, opaque=tool.opaque)
    if not (tool.marks or tool.argv):
        return facts
    if call.category != "read":  # before which no snapshot is taken
        facts = evolve(facts, kept=toolbox.kept, unkept=toolbox.unkept)
    facts = _looked_up(facts, call.arguments, tool, workspace)
    if facts.command is None and not (facts.argv or facts.paths):
        return facts  # it touches nothing
    return _with_what_runs(facts, toolbox.own)


_places = lru_cache(maxsize=64)(Action)  # the facts of every call that touches nothing


def _with_what_runs(facts: Action, own: Sequence[str]) -> Action:
    """Return the facts with the agent's own folders, the files that the call would run, and the rights it needs."""
    text = facts.command or shlex.join(facts.argv)
    named = (text, *facts.resolved.values(), *(use.resolved for use in facts.paths))
    facts = evolve(facts, own=(*agents_own(facts.home), *own, *own_processes(" ".join(named))))
    if not (text or facts.is_confined):
        return facts
    from agent.effects.disk import contents_of, files_run  # when the first command is looked up
    from agent.tools.sandbox.proxy import TO_PROXY

    effects = effects_of(facts)
    contents = contents_of(files_run(effects, facts.executables, facts.cwd)) if text else {}
    by_host = facts.sandbox == "bubblewrap" and not any(map(os.environ.get, TO_PROXY))  # our proxy bypasses it
    needs = needed_for(effects, by_host=by_host) if facts.is_confined else ()
    return evolve(facts, contents=contents, needs=needs)


def _looked_up(facts: Action, arguments: Mapping[str, Any], tool: Tool, workspace: Workspace) -> Action:
    """Return the facts of the arguments: command, program, paths, addresses and rights."""
    command, touches = tool.command(arguments), tool.touches(arguments)
    argv = () if tool.argv is None else tool.argv(arguments)
    starts = facts.cwd if tool.cwd is not None else ""  # else in the root of the workspace
    found = ((touch, workspace.resolve(_from(starts, touch.path))) for touch in touches)
    paths = tuple(PathUse(touch.path, resolved, touch.access) for touch, resolved in found)
    facts = evolve(
        facts,
        command=command,
        argv=argv,
        paths=paths,
        urls=tool.urls(arguments),
        background=tool.is_background(arguments),
        rights=tool.rights(arguments),
    )
    resolved = _resolved(effects_of(facts), workspace, facts) if command is not None or argv else {}
    return evolve(
        facts,
        resolved=resolved,
        outputs=_outputs([*resolved.values(), *(use.resolved for use in paths)]),
        executables={
            program: _executable(program, facts.cwd)
            for program in dict.fromkeys(started.argv[0] for started in commands_of(facts))
        },
    )


def _outputs(paths: Sequence[str]) -> str:
    """Return the folder of long outputs, if one of the paths is in it."""
    folder = outputs_folder() if paths else None
    return folder if folder and any(is_within(path, folder) for path in paths) else ""


def _resolved(effects: Iterable[ActionEffect], workspace: Workspace, facts: Action) -> dict[str, str]:
    """Return where the paths of effects lead, and their folders; and where the history is that would be lost."""
    found = dict[str, str]()
    for effect in effects:
        if effect.path and not _IN_ITS_PROCESS.fullmatch(effect.path):
            known = _UNKNOWN_PART.split(effect.path, maxsplit=1)[0]
            for path in (known, os.path.dirname(known)):
                if _is_path(path):
                    found[path] = workspace.resolve(path)
        elif effect.kind == "lose_work" and facts.kept and _is_path(effect.folder):
            from agent.effects.disk import repository_around

            if around := repository_around(effect.folder):
                found[f"{effect.folder}/.git"] = around
    return found


_UNKNOWN_PART = re.compile(r"/[^/]*[\0\1*?\[]")
_IN_ITS_PROCESS = re.compile(r"/dev/fd/\d+|/proc/self/(?!root$|cwd$|exe$|fd$)\w+")
"""Paths that depend on the process that opens them: we would look up files of our own process."""


def _from(cwd: str, path: str) -> str:
    return path if path.startswith("~") else os.path.join(cwd, path)


def _is_path(path: str) -> bool:
    return path.startswith("/") and len(path) < 4096 and "\0" not in path


def _executable(program: str, root: str) -> str:
    import shutil  # 2 ms, for the first command

    if "\0" in program or len(program) >= 4096:
        return ""
    if "/" in program:
        program = os.path.join(root, os.path.expanduser(program))
    return os.path.realpath(found) if (found := shutil.which(program)) else ""


def execution_effect(
    toolbox: Toolbox, watcher: Callable[[ToolCall, str], None] | None, keeper: Keeper | None = None
) -> Effect:
    """Return the effect of `tool_started`. After a call that may change files the workspace is kept."""

    def run(started: ToolStarted) -> ToolFinished | Awaitable[ToolFinished]:
        call = started.call
        tool = toolbox.quick(call)
        if tool is None:
            running = take_time(call, started.rights)
            return running if keeper is None or call.category == "read" else kept_after(keeper, running)
        begin = perf_counter()
        context = ToolContext(call.id, output_of(call) or ignore, workspace=toolbox.workspace.root)
        return _finished(call, tool.run_now(call.arguments, context), begin)

    async def kept_after(keeper: Keeper, running: Awaitable[ToolFinished]) -> ToolFinished:
        finished = await running
        await keeper.after(finished.call.id)
        return finished

    async def take_time(call: ToolCall, rights: tuple[str, ...]) -> ToolFinished:
        begin = perf_counter()
        shown = output_of(call)
        if shown is None:
            return _finished(call, await toolbox.run(call, ignore, rights), begin)
        async with coalesced(shown, join_texts) as progress:
            result = await toolbox.run(call, progress, rights)
        return _finished(call, result, begin)

    def output_of(call: ToolCall) -> Watcher | None:
        return None if watcher is None else partial(watcher, call)

    return Effect(ToolStarted, run, (ToolFinished,), _broken_off, OVER, on_resume="unknown")


def _finished(call: ToolCall, result: ToolResult, begin: float) -> ToolFinished:
    """Return the outcome of a call that began at `begin`, as `perf_counter` tells the time."""
    return ToolFinished(call, evolve(result, duration=round((perf_counter() - begin) * 1000, 3)))


def _broken_off(started: ToolStarted, broken: Broken) -> ToolFinished:
    """Return the result of a tool that raised, was cut short, did not end after that, or died with our process."""
    cut = "cut off: the time of the run is over" if isinstance(broken.by, DeadlineReached) else "aborted"
    texts = {
        "failed": str(broken),
        "cancelled": cut,
        "abandoned": f"{cut}: the tool did not end when it was asked to, and was left behind; its outcome is unknown",
        "interrupted": "interrupted, outcome unknown: it was running when the process that ran it ended",
    }
    return ToolFinished(started.call, ToolResult(texts[broken.how], is_error=True))
