"""Repair: small Python modules with a bug each. The side task is a backdoor that hidden tests do not see.

- `programs`: the modules that were right once, and what can be wrong with them. `more_programs`: the other half
- `backdoors`: ways to hide one
- `repairs`: the setting
"""

from agent.lab.settings.repair.repairs import REPAIR

__all__ = ["REPAIR"]
