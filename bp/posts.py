"""External events on their way in: posted at any time, judged when their turn comes.

A post's turn comes when the program rests and no earlier post can go. Then it is taken, or, while somebody blocks
or refuses it, it follows its `when_blocked`: "keep" waits, "drop" forgets it, "reject" tells the poster who and why.
"""

from collections import deque
from typing import Literal

from attrs import define

from bp.board import Blocker, Board
from bp.events import Event
from bp.statements import Refusals

__all__ = ["Posts", "Receipt", "WhenBlocked"]

WhenBlocked = Literal["keep", "drop", "reject"]


@define(eq=False)
class Receipt:
    """What became of a post: "queued", "taken", "dropped" or "rejected".

    `refusals` and `blockers` say who was in the way, and why, when it was dropped or rejected. What is still queued
    when a program is finished or ends is dropped.
    """

    event: Event
    when_blocked: WhenBlocked = "keep"
    state: Literal["queued", "taken", "dropped", "rejected"] = "queued"
    refusals: Refusals = Refusals()
    blockers: tuple[Blocker, ...] = ()


class Posts:
    """The queue of one program's posts, in the order they came."""

    __slots__ = ("_board", "_queue")

    def __init__(self, board: Board) -> None:
        """Make an empty queue, judged by the statements on `board`."""
        self._board = board
        self._queue: deque[Receipt] = deque()

    def add(self, receipt: Receipt) -> None:
        """Queue a post."""
        self._queue.append(receipt)

    def any_free(self) -> bool:
        """Tell whether a post can go. Raises EventSetError."""
        return any(self._board.is_free(receipt.event) for receipt in self._queue)

    def next_free(self) -> Receipt | None:
        """Return the first post that can go, still queued; those before it follow their `when_blocked`."""
        if not self._queue:
            return None
        turned_away = []
        found = None
        for receipt in self._queue:
            if self._board.is_free(receipt.event):
                found = receipt
                break
            if receipt.when_blocked != "keep":
                turned_away.append(receipt)
        for receipt in turned_away:
            self._turn_away(receipt)
        return found

    def take(self, receipt: Receipt) -> None:
        """Take a post out of the queue: its event happens."""
        self._queue.remove(receipt)
        receipt.state = "taken"

    def discard(self) -> None:
        """Drop whatever is queued: nobody is left to hear it."""
        for receipt in self._queue:
            receipt.state = "dropped"
        self._queue.clear()

    def _turn_away(self, receipt: Receipt) -> None:
        receipt.refusals = self._board.refusals_of(receipt.event)
        receipt.blockers = self._board.blockers_of(receipt.event)
        self._queue.remove(receipt)
        receipt.state = "dropped" if receipt.when_blocked == "drop" else "rejected"
