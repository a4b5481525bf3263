"""The tables `programs.toml`, `places.toml` and `rules.toml`. No other module of the constitution reads files."""

import tomllib
from functools import cache
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Return a table, which is a constant."""
    with open(f"{__file__.rpartition('/')[0]}/{name}.toml", encoding="utf-8") as file:
        return tomllib.loads(file.read())
