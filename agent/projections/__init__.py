"""The memory of an agent: folds over the events of a run, by their kinds, which b-threads never read."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bp import Event


class Projection:
    """Remembers what some kinds of events tell: `FOLDS` has a method for each of them."""

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Any], None]]]

    def fold(self, event: Event) -> None:
        """Fold an event into the state."""
        fold = self.FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)
