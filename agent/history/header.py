"""The header of a log: which program made it, so that it can be built again."""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import FunctionType
from typing import Any

from agent.models.model import Model
from agent.presets.preset import Preset
from agent.tools.toolbox import Toolbox
from agent.vocabulary.encoding import FORMAT, plain
from bp import BThread

PACKAGES = ("bpagent", "anyio", "attrs", "tree-sitter-bash")


def make_header(
    preset: Preset,
    bthreads: Sequence[BThread],
    model: Model,
    toolbox: Toolbox,
    system_prompt: str,
    *,
    approvals: str,
    secrets: Sequence[str],
    about: Mapping[str, str],
) -> dict[str, Any]:
    """Return the header of the log of an agent."""
    return {
        "format": FORMAT,
        "preset": preset.name,
        "configuration": _configuration(preset),
        "seed": None,  # nothing is drawn: events are selected by priority and age
        "approvals": approvals,
        "secrets": secrets,
        "bthreads": [named(bthread) for bthread in bthreads],
        "model": model.name,
        "api": getattr(model, "api", None),  # which wire format a resumed run speaks; only servers have one
        "about": about,
        "tools": list(toolbox.names),
        "workspace": toolbox.workspace.root,
        "sandbox": toolbox.sandbox,
        "system_prompt": system_prompt,
        "versions": {"python": platform.python_version(), **{package: _version(package) for package in PACKAGES}},
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def named(bthread: BThread) -> dict[str, Any]:
    """Return a b-thread as the header names it: its function, and its arguments as text, by name where given so."""
    function = bthread.function
    return {
        "name": bthread.name,
        "function": f"{function.__module__}:{function.__qualname__}",
        "arguments": [
            *map(_text, bthread.args),
            *(f"{name}={_text(argument)}" for name, argument in bthread.kwargs.items()),
        ],
    }


@lru_cache(maxsize=64)
def _configuration(preset: Preset) -> Any:
    """Return the options as plain data; the agents of an experiment share their presets."""
    return plain(preset.configuration())


def _text(argument: object) -> str:
    """Return an argument as text; a function as where it is, and not where it lies in memory."""
    if isinstance(argument, FunctionType):
        return f"{argument.__module__}:{argument.__qualname__}"
    return str(argument)


@cache
def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # 10 ms, and needed only where there is a log

    try:
        return version(package)
    except PackageNotFoundError:
        return None
