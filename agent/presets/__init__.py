"""Presets: which b-threads, which policy, which limits and texts. Plain data over the same parts.

Two presets differ in data only; every field is one option (`--option NAME=VALUE` on the command line).

Reading order:

- `types`: what an option may hold. `options`: options by name, and what is said about one that cannot be.
- `prompts`: the system prompts. `judging`: a policy of the constitution as a function.
- `rules`: which b-threads the options choose, one line each. `preset`: the options, one field each.
- `shipped`: the presets by name. `configuration`: presets and options from a YAML file. `user_rules`: what the user
  said about commands, in another one. `equipment`: the tools that the options choose.
"""

from typing import TYPE_CHECKING

from agent.presets.judging import Judge
from agent.presets.options import OptionError
from agent.presets.preset import Preset
from agent.presets.shipped import PRESETS, PURPOSES, preset_named
from agent.vocabulary.lazy import from_modules

if TYPE_CHECKING:
    from agent.presets.configuration import Configuration, preset_from_file, read_configuration, save_options
    from agent.presets.equipment import equip
    from agent.presets.user_rules import add_user_rule, read_user_rules

__all__ = [
    "PRESETS",
    "PURPOSES",
    "Configuration",
    "Judge",
    "OptionError",
    "Preset",
    "add_user_rule",
    "equip",
    "preset_from_file",
    "preset_named",
    "read_configuration",
    "read_user_rules",
    "save_options",
]

__getattr__ = from_modules(  # what a file needs
    "agent.presets",
    {
        **dict.fromkeys(("Configuration", "preset_from_file", "read_configuration", "save_options"), "configuration"),
        "equip": "equipment",
        **dict.fromkeys(("add_user_rule", "read_user_rules"), "user_rules"),
    },
)
