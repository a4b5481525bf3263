"""What the command line names besides b-threads: presets with options, folders."""

from collections.abc import Iterable
from pathlib import Path

from agent.cli.mistakes import Mistake
from agent.presets import Preset, preset_named
from agent.tools import Tool, workspace_tools

__all__ = ["chosen_preset", "existing_folder", "tools_of"]


def chosen_preset(name: str, options: Iterable[str] = ()) -> Preset:
    """Return a preset with `NAME=VALUE` options. Raises OptionError and Mistake."""
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise Mistake(f"--option {option!r} has no value; write NAME=VALUE, such as max_iterations=5")
        parsed[key.strip()] = value
    return preset_named(name).with_options(parsed)


def existing_folder(path: str, what: str = "--workspace") -> Path:
    """Return a folder, absolute. Raises Mistake when it is none."""
    folder = Path(path).expanduser()
    try:
        if folder.is_dir():
            return folder.resolve()
        found = "is a file" if folder.exists() else "does not exist"
    except (OSError, ValueError) as error:
        found = f"cannot be looked at ({error})"
    raise Mistake(f"{what} {path!r} {found}; name a folder")


def tools_of(preset: Preset, workspace: Path) -> tuple[Tool, ...]:
    """Return the tools of a preset over a workspace."""
    return workspace_tools(
        workspace,
        allowed=preset.allowed_paths,
        denied=preset.denied_paths,
        timeout=preset.timeout,
        output_limit=preset.output_limit,
    )
