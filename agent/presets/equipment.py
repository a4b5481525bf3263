"""The tools that the options of a preset choose."""

import os
from pathlib import Path

from agent.presets.preset import OptionError, Preset
from agent.presets.shipped import PRESETS
from agent.tools.background import Processes
from agent.tools.collections import CodingOptions, create_all_tools, make_collection
from agent.tools.definition import Tool
from agent.tools.output import Retention
from agent.tools.shell import ShellOptions
from agent.tools.workspace import Workspace


def equip(preset: Preset, root: str | os.PathLike[str]) -> tuple[Tool, ...]:
    """Return the tools of a preset over a workspace, those of its file last. Raises OptionError for a wrong file."""
    workspace = Workspace(root, preset.allowed_paths if preset.bounded else ("/",), preset.denied_paths)
    return *_collection(preset, workspace), *_declared(preset, workspace)


def shell_options(preset: Preset) -> ShellOptions:
    """Return how commands run under a preset."""
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
    """Return where commands may stay in the background under a preset; None: nowhere."""
    if preset.background == "none":
        return None
    return Processes(preset.background, retention=shell_options(preset).retention)


def _collection(preset: Preset, workspace: Workspace) -> tuple[Tool, ...]:
    shell = shell_options(preset)
    if preset.tools != "coding":
        return make_collection(preset.tools, workspace, shell, processes_of(preset))
    allowed = preset.allowed_paths if preset.bounded else ("/",)
    options = CodingOptions(allowed=allowed, denied=preset.denied_paths, shell=shell, processes=processes_of(preset))
    return tuple(create_all_tools(workspace.root, options).values())


def _declared(preset: Preset, workspace: Workspace) -> tuple[Tool, ...]:
    """Return the tools of the preset's file; the file that it ships with need not be there."""
    if preset.tools_file is None:
        return ()
    path = Path(preset.tools_file).expanduser()
    shipped = PRESETS.get(preset.name)
    if not path.exists() and shipped is not None and shipped.tools_file == preset.tools_file:
        return ()
    from agent.tools.declared import DeclarationError, load_tools

    try:
        return load_tools(path, workspace, shell_options(preset))
    except DeclarationError as error:
        raise OptionError(str(error)) from error
