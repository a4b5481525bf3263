"""What a tool's processes see of the environment: an allowlist, and nothing else of ours (S0 6.4)."""

import os
from collections.abc import Mapping

__all__ = ["ALLOWED_VARIABLES", "tool_environment"]

ALLOWED_VARIABLES = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "TZ")


def tool_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the allowed variables that are set, and `extra`, which wins (S6.6, S6.13)."""
    allowed = {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ}
    return allowed | dict(extra or {})
