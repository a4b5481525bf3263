"""Calling models: answers are kept by what was asked, and no role is asked more often than it may.

The key of an answer is (role, model, parameters, messages, number of the draft, seed): the same conversation asked a
second time is another draft, and gets another answer. What a kept answer would have cost is nominal; what was asked for
now is actual, and the call that crosses a limit is counted like any other.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import anyio
from attrs import asdict

from agent.messages import AssistantMessage, ReasoningItem, RequestedCall, Usage
from agent.models import Answer, Delta, Model, ModelRequest

__all__ = ["CachedModel", "PacedModel"]


class CachedModel:
    """A model whose answers are kept in a folder. `nominal` is what all cost, `actual` what was asked for now."""

    def __init__(self, model: Model, folder: Path, *, seed: str = "", parameters: Mapping[str, object] = {}) -> None:
        self._model, self._folder, self._seed = model, folder, seed
        self._parameters = dict(parameters)
        self._drafts: Counter[str] = Counter()
        self.nominal = Usage()
        self.actual = Usage()

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return self._model.name

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the kept answer, or ask for one and keep it."""
        asked = _digest([request.role, self.name, self._parameters, _plain(request), self._seed])
        draft = self._drafts[asked]
        self._drafts[asked] += 1
        path = self._folder / f"{_digest([asked, draft])}.json"
        kept = _read(path)
        if kept is None:
            kept = await self._model.answer(request, on_delta)
            self.actual += kept.usage
            _write(path, kept)
        else:
            on_delta(Delta(text=kept.message.text))
        self.nominal += kept.usage
        return kept


class PacedModel:
    """A model that is asked at most so often in a minute, evenly; it is shared by all episodes of a process."""

    def __init__(self, model: Model, per_minute: float, now: Callable[[], float] = anyio.current_time) -> None:
        self._model, self._pause, self._now = model, 60 / per_minute, now
        self._next = 0.0

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return self._model.name

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the model's answer, when it is time to ask."""
        now = self._now()
        turn = max(now, self._next)
        self._next = turn + self._pause
        await anyio.sleep(turn - now)
        return await self._model.answer(request, on_delta)


def _digest(value: object) -> str:
    return blake2b(json.dumps(value, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def _plain(request: ModelRequest) -> list[object]:
    messages = [[type(message).__name__, repr(message)] for message in request.messages]
    return [request.system_prompt, messages, [repr(tool) for tool in request.tools]]


def _read(path: Path) -> Answer | None:
    """Return a kept answer; None where there is none that is whole."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        said = kept["message"]
        calls = tuple(RequestedCall(**call) for call in said["calls"])
        items = tuple(ReasoningItem(**item) for item in said["reasoning_items"])
        message = AssistantMessage(said["text"], calls, said["reasoning"], items)
        return Answer(message, kept["stop_reason"], Usage(**kept["usage"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, answer: Answer) -> None:
    """Keep an answer: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(asdict(answer), ensure_ascii=False), encoding="utf-8")
    draft.replace(path)
