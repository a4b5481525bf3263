"""What a tool's processes see of the environment: an allowlist (S0 6.4), or all of ours where that is chosen."""

import os
from collections.abc import Mapping

__all__ = ["ALLOWED_VARIABLES", "tool_environment"]

ALLOWED_VARIABLES = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "TZ")


def tool_environment(extra: Mapping[str, str] | None = None, *, inherits: bool = False) -> dict[str, str]:
    """Return the allowed variables that are set, or all with `inherits`, and `extra`, which wins (S6.6, S6.13)."""
    names = os.environ if inherits else [name for name in ALLOWED_VARIABLES if name in os.environ]
    return {name: os.environ[name] for name in names} | dict(extra or {})
