"""Presets: which b-threads, which policy, which limits and texts. Plain data over the same parts.

Two presets differ in data only; every field is one option (`--option NAME=VALUE` on the command line).

Reading order:

- `options`: options given as text, and what is said about one that cannot be.
- `prompts`: the system prompts. `judging`: a policy of the constitution as a function.
- `rules`: which b-threads the options choose, one line each. `preset`: the options, one field each.
- `shipped`: the presets by name.
"""

from agent.presets.options import OptionError
from agent.presets.preset import Preset
from agent.presets.shipped import PRESETS, preset_named

__all__ = ["PRESETS", "OptionError", "Preset", "preset_named"]
