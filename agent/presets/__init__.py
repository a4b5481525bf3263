"""Presets: which b-threads, which policy, which limits and texts.

Two presets differ in data only; every field is one option (`--option NAME=VALUE` on the command line).
"""

from typing import TYPE_CHECKING

from agent.vocabulary import from_modules

if TYPE_CHECKING:
    from agent.presets.configuration import preset_from_file, read_configuration, save_options
    from agent.presets.policy_files import load_policy
    from agent.presets.preset import OptionError, Preset
    from agent.presets.shipped import PRESETS, preset_named

__all__ = [
    "PRESETS",
    "OptionError",
    "Preset",
    "load_policy",
    "preset_from_file",
    "preset_named",
    "read_configuration",
    "save_options",
]

__getattr__, __dir__ = from_modules(
    "agent.presets",
    {
        "preset": "OptionError Preset",
        "shipped": "PRESETS preset_named",
        "configuration": "preset_from_file read_configuration save_options",
        "policy_files": "load_policy",
    },
)
