"""Which item each event of a responses stream belongs to, also when its server numbers or names items wrongly.

An event is for an item of its type. For a delta, the first of these that there is:

1. the item with the id of the event, unless both have a position and these differ
2. the item at the position of the event that was touched last
3. where the event has no position: the item touched last that is not whole yet, unless both have ids (reasoning is
   joined all the same)

else it begins an item. An announcement begins one, unless a delta did so before. What is given whole takes the place of
what streamed, in the item found as above or by its call id; one that was whole already is said again, or is another.
"""

from collections.abc import Sequence
from io import StringIO

from attrs import evolve

from agent.models.model import ModelError
from agent.models.response_events import ItemType, Place, WholeItem

__all__ = ["MOST_ITEMS", "Item", "StreamedItems"]

MOST_ITEMS = 2_000
"""Items that an answer may have; more are an error."""


class Item:
    """An item of an answer while it streams."""

    def __init__(self, type: ItemType, place: Place) -> None:
        self.type = type
        self.index = place.index
        self.said = WholeItem(type, place.id)
        self.is_announced = False
        self.is_whole = False
        self._streamed = StringIO()

    @property
    def text(self) -> str:
        """What it says as a whole, else what has streamed."""
        return self.said.text or self._streamed.getvalue()

    def extend(self, text: str) -> None:
        """Take the next delta."""
        self._streamed.write(text)

    def learn(self, place: Place, said: WholeItem) -> None:
        """Take what an announcement or the whole item says; what it leaves out stays."""
        self.index = place.index if self.index is None else self.index
        before = self.said
        self.said = evolve(
            said,
            id=said.id or before.id,
            call_id=said.call_id or before.call_id,
            name=said.name or before.name,
            text=said.text or before.text,
        )

    def may_be(self, place: Place) -> bool:
        """Tell whether the positions allow that `place` is this item's."""
        return self.index is None or place.index is None or self.index == place.index


class StreamedItems:
    """The items of an answer, in the order in which they began."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._by_id: dict[tuple[ItemType, str], Item] = {}
        self._by_index: dict[tuple[ItemType, int], Item] = {}
        self._touched: dict[ItemType, Item] = {}

    def extend(self, type: ItemType, place: Place, text: str) -> None:
        """Take a delta."""
        item = self._candidate(type, place)
        if item is None or item.is_whole:
            item = self._begin(type, place)
        item.extend(text)
        self._touched[type] = item

    def announce(self, place: Place, said: WholeItem) -> None:
        """Take an announcement."""
        place = evolve(place, id=place.id or said.id)
        item = self._candidate(said.type, place)
        if item is None or ((item.is_announced or item.is_whole) and not _is_named_alike(item, said)):
            item = self._begin(said.type, place)
        item.is_announced = True
        self._learn(item, place, said)

    def finish(self, place: Place, said: WholeItem) -> None:
        """Take a whole item."""
        place = evolve(place, id=said.id or place.id)
        item = self._candidate(said.type, place) or self._with_call_id(said)
        if item is None or _is_another(item, said):
            item = self._begin(said.type, place)
        item.is_whole = True
        self._learn(item, place, said)

    def merge(self, final: Sequence[WholeItem]) -> None:
        """Take the whole output, said once more at the end: it fills in what did not come before.

        The n-th of a type here is the n-th of that type there; positions and ids may differ.
        """
        streamed = {type: [item for item in self.in_order() if item.type == type] for type in {i.type for i in final}}
        for said in final:
            item = streamed[said.type].pop(0) if streamed[said.type] else self._begin(said.type, Place(None, said.id))
            if not item.is_whole:
                item.is_whole = True
                item.learn(Place(), said)

    def in_order(self) -> list[Item]:
        """Return the items by position when each has its own, else as they began."""
        indices = {item.index for item in self._items}
        if None in indices or len(indices) < len(self._items):
            return list(self._items)
        return sorted(self._items, key=lambda item: item.index or 0)

    def _candidate(self, type: ItemType, place: Place) -> Item | None:
        known = self._by_id.get((type, place.id)) if place.id else None
        if known is not None and known.may_be(place):
            return known
        if place.index is not None:
            return self._by_index.get((type, place.index))
        last = self._touched.get(type)
        if last is None or last.is_whole:
            return None
        return None if place.id and last.said.id and type != "reasoning" else last

    def _with_call_id(self, said: WholeItem) -> Item | None:
        """Find the call with the same call id that is not whole yet."""
        if not said.call_id:
            return None
        calls = (item for item in self._items if item.said.call_id == said.call_id and not item.is_whole)
        return next(calls, None)

    def _begin(self, type: ItemType, place: Place) -> Item:
        if len(self._items) == MOST_ITEMS:
            raise ModelError(f"the model's answer has more than {MOST_ITEMS:,} items; ask for less at once")
        item = Item(type, place)
        self._items.append(item)
        self._remember(item, place)
        return item

    def _learn(self, item: Item, place: Place, said: WholeItem) -> None:
        item.learn(place, said)
        self._remember(item, place)

    def _remember(self, item: Item, place: Place) -> None:
        self._touched[item.type] = item
        if place.id:
            self._by_id[item.type, place.id] = item
        if item.index is not None:
            self._by_index[item.type, item.index] = item


def _is_named_alike(item: Item, said: WholeItem) -> bool:
    """Tell whether an announcement is the same one again."""
    before = item.said
    has_name = bool(said.id or said.call_id)
    return has_name and (before.id, before.call_id, before.name) == (said.id, said.call_id, said.name)


def _is_another(item: Item, said: WholeItem) -> bool:
    """Tell whether a whole item is another than the one that stands in its place."""
    before = item.said
    if item.is_whole:
        return (before.call_id, before.name, item.text) != (said.call_id, said.name, said.text)
    return any(old and new and old != new for old, new in ((before.call_id, said.call_id), (before.name, said.name)))
