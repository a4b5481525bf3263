"""The tools that the options of a preset choose."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from agent.presets import PRESETS
from agent.presets.preset import OptionError, Preset
from agent.tools.background import Processes
from agent.tools.collections import CodingOptions, create_all_tools, make_collection
from agent.tools.definition import Tool
from agent.tools.output import Retention
from agent.tools.shell import ShellOptions
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import CannotStart

if TYPE_CHECKING:
    from agent.tools.sandbox.sandbox import Sandbox


def equip(
    preset: Preset, root: str | os.PathLike[str], own: Iterable[str] = (), scratches: str = ""
) -> tuple[Tool, ...]:
    """Return the tools of a preset over a workspace, those of its file last.

    own: the agent's own folders, which are hidden from commands in a sandbox. scratches: the folder in which what
    commands write to /tmp stays. Raises OptionError for an invalid file, and for a required sandbox that cannot work
    here.
    """
    workspace = Workspace(root, preset.allowed_paths if preset.bounded else ("/",), preset.denied_paths)
    writable = workspace.roots if preset.bounded else (workspace.root,)
    shell = evolve(shell_options(preset), sandbox=_sandbox(preset, writable, (*workspace.denied, *own), scratches))
    return *_collection(preset, workspace, shell), *_declared(preset, workspace, shell)


def _sandbox(preset: Preset, writable: tuple[str, ...], denied: tuple[str, ...], scratches: str) -> "Sandbox | None":
    if preset.sandbox == "off":
        return None
    from agent.tools.sandbox.sandbox import make_sandbox  # 20 ms, and the abilities of the machine are tried

    try:
        return make_sandbox(preset.sandbox, writable, denied, scratches)
    except CannotStart as error:
        raise OptionError(str(error)) from error


def shell_options(preset: Preset) -> ShellOptions:
    """Return the options of the shell under a preset."""
    return ShellOptions(
        shell=tuple(preset.shell.split()),
        timeout=preset.timeout,
        longest_timeout=preset.max_timeout,
        shortest_timeout=preset.min_timeout,
        retention=Retention(preset.output_limit, preset.output_lines, preset.output_keep, preset.spill),
        separate=preset.streams == "separate",
        nonzero_is_error=preset.nonzero_is_error,
        inherit=preset.env == "inherit",
        form=preset.result_form,
        compact=preset.compact,
    )


def processes_of(preset: Preset) -> Processes | None:
    """Return the store of background processes of a preset; None: commands may not stay."""
    if preset.background == "none":
        return None
    return Processes(preset.background, retention=shell_options(preset).retention)


BESIDES = ("edit", "grep", "find", "todoread", "todowrite", "websearch", "webfetch")
"""The tools that S2 adds to those of S0."""


def _collection(preset: Preset, workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    if preset.tools == "all":
        own = _collection(evolve(preset, tools="workspace"), workspace, shell)
        more = _collection(evolve(preset, tools="coding", background="none"), workspace, shell)
        return *own, *(tool for tool in more if tool.name in BESIDES)
    if preset.tools != "coding":
        return make_collection(preset.tools, workspace, shell, processes_of(preset))
    allowed = preset.allowed_paths if preset.bounded else ("/",)
    options = CodingOptions(allowed=allowed, denied=preset.denied_paths, shell=shell, processes=processes_of(preset))
    return tuple(create_all_tools(workspace.root, options).values())


def _declared(preset: Preset, workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    """Return the tools of the preset's file; the default file may be missing."""
    if preset.tools_file is None:
        return ()
    path = Path(preset.tools_file).expanduser()
    shipped = PRESETS.get(preset.name)
    if not path.exists() and shipped is not None and shipped.tools_file == preset.tools_file:
        return ()
    from agent.tools.declared import DeclarationError, load_tools

    try:
        return load_tools(path, workspace, shell)
    except DeclarationError as error:
        raise OptionError(str(error)) from error
