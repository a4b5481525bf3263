"""Public names whose modules are imported when they are used: what a program does not use does not delay its start."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["from_modules"]


def from_modules(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of `package`, which finds each name in the module of the package that `homes` gives."""

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
