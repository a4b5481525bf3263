"""A run told as it happens: the events of S2 for a listener, and for whoever reads them one by one."""

from collections.abc import AsyncIterator, Callable, Iterable

import anyio

from agent.projections.narration import Narration, StreamEvent
from agent.vocabulary.calls import ToolCall
from bp import Step

__all__ = ["Narrator"]


class Narrator:
    """Keeps the events of one run, and passes each on. What a listener raises is for the run to handle."""

    def __init__(self, listener: Callable[[StreamEvent], None] | None = None) -> None:
        """Begin before the run."""
        self._narration = Narration()
        self._listener = listener
        self._told: list[StreamEvent] = []
        self._news = anyio.Event()
        self._over = False

    def step(self, step: Step) -> None:
        """Tell a step."""
        self._tell(self._narration.tell(step.event))

    def text(self, piece: str) -> None:
        """Tell a piece of the model's answer."""
        self._tell(self._narration.text(piece))

    def output(self, call: ToolCall, piece: str) -> None:
        """Tell a piece of a tool's output."""
        self._tell(self._narration.output(call, piece))

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._wake()

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        """Give every event, those that were told already first, until the run is over."""
        position = 0
        while position < len(self._told) or not self._over:
            if position == len(self._told):
                await self._news.wait()
                continue
            yield self._told[position]
            position += 1

    def _tell(self, events: Iterable[StreamEvent]) -> None:
        for event in events:
            self._told.append(event)
            self._wake()
            if self._listener is not None:
                self._listener(event)

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()
