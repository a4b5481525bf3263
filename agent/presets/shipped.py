"""The presets by name: one for each specified system, and `default`, the recommended one."""

from agent.presets.options import OptionError, nearest
from agent.presets.preset import Preset

__all__ = ["PRESETS", "preset_named"]

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("default", together="neighbours"),
        Preset(
            "workspace",  # S0
            policy="workspace",
            max_failures=None,
            allowed_paths=("~/.agent/workspace", "/tmp/agent"),
        ),
    )
}


def preset_named(name: str) -> Preset:
    """Return a preset. Raises OptionError, naming the nearest, when there is none of this name."""
    if name not in PRESETS:
        raise OptionError(f"there is no preset {name!r}{nearest(name, PRESETS)}; presets: {', '.join(PRESETS)}")
    return PRESETS[name]
