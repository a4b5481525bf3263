"""The values that all other layers use: messages, calls, events, and the reasons of refusals."""

from importlib import import_module

TYPE_CHECKING = False  # see `agent`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def from_modules(package: str, names: "Mapping[str, str]") -> "tuple[Callable[[str], Any], Callable[[], list[str]]]":
    """Return the `__getattr__` and the `__dir__` of `package`; `names` lists them by module.

    A module is named from the package on, or in full; its names are separated by spaces.
    """
    whole = {module: module if module.startswith("agent.") else f"{package}.{module}" for module in names}
    homes = {name: whole[module] for module, listed in names.items() for name in listed.split()}

    def attribute(name: str) -> "Any":
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return attribute, lambda: sorted(homes)
