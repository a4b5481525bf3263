"""What a rule is: an effect, the zones in which it matters, a level, and the examples that show it.

    Rule("delete_outside_workspace", "destruction", DELETE_TREE, OUTSIDE_ALL, deny,
         match=("rm -rf /",), near_miss=("rm -rf build",))

Examples are judged in `/ws` with the home folder `/home/me`; a test runs every one.
"""

from attrs import field, frozen

from constitution.effects import Effect, Zone
from constitution.verdict import Level

__all__ = ["Rule"]


def _effects(value: "Effect | tuple[Effect, ...]") -> tuple[Effect, ...]:
    return (value,) if isinstance(value, Effect) else value


@frozen
class Rule:
    """One row of a statute. No zones means: wherever it happens."""

    name: str
    category: str
    effects: tuple[Effect, ...] = field(converter=_effects)
    zones: tuple[Zone, ...]
    level: Level
    match: tuple[str, ...] = ()
    near_miss: tuple[str, ...] = ()
