"""Presets: which b-threads, which policy, which limits and texts.

Two presets differ in data only; every field is one option (`--option NAME=VALUE` on the command line).
"""

from agent.presets.preset import OptionError, Preset
from agent.presets.shipped import PRESETS, preset_named

__all__ = ["PRESETS", "OptionError", "Preset", "preset_named"]
