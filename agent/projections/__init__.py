"""The memory of an agent: folds over the events of a run, by kind. B-threads never read them."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bp import Event


class Projection:
    """A state folded from events; `FOLDS` has a method for each kind that it needs."""

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Any], None]]]

    def fold(self, event: Event) -> None:
        """Fold an event into the state."""
        fold = self.FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)
