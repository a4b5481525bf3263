"""Calling models: answers are kept by what was asked, and each is asked for once, whoever needs it.

The key of an answer is (role, model, parameters, messages, number of the draft, seed): the same conversation asked a
second time is another draft, and gets another answer. What a kept answer would have cost is nominal; what was asked for
now is actual, and the call that crosses a limit is counted like any other.

The folder in which an episode happens has another name each time. In keys and in what is kept it has none, and a kept
answer that speaks of it speaks of the folder of whoever is given it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from itertools import count
from pathlib import Path

import anyio
from attrs import asdict

from agent.effects.inference import Measure
from agent.effects.timers import seconds_before
from agent.lab.locking import alone
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest, Price
from agent.vocabulary.conversion import parsed
from agent.vocabulary.events import BackoffStarted
from agent.vocabulary.messages import Usage

__all__ = ["CachedModel"]

MEASURED = Measure(estimates=True)
HERE = "/-the-world-of-this-episode-"
"""What stands for the episode's folder in what is kept."""


class CachedModel:
    """A model whose answers are kept in a folder. `nominal` is what all cost, `actual` what was asked for now.

    here: the folder of the episode. attempts: how often a failing model is asked, a little later each time, by `wait`;
    the loop does that by itself. before: is called before each request, and may raise; after: when an answer has come,
    or none, with how many requests that took, and what it cost. asked: how often the model was asked, failures
    included. failures: why there was no answer, of what was not answered later.
    """

    def __init__(
        self,
        model: Model,
        folder: Path,
        *,
        seed: str = "",
        here: str = "",
        parameters: Mapping[str, object] = {},
        price: Price | None = None,
        attempts: int = 1,
        before: Callable[[], None] = lambda: None,
        after: Callable[[int, Usage], None] = lambda _, __: None,
        wait: Callable[[BackoffStarted], float] = seconds_before,
    ) -> None:
        self._model, self._folder, self._seed, self._here = model, folder, seed, here or HERE
        self._parameters, self._price = dict(parameters), price
        self._attempts, self._before, self._after, self._wait = attempts, before, after, wait
        self._taken: defaultdict[str, set[int]] = defaultdict(set)
        self.nominal = Usage()
        self.actual = Usage()
        self.asked = 0
        self.failures: dict[str, Exception] = {}

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return self._model.name

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the kept answer, or ask for one and keep it. Raises ModelError, and OSError where none can be kept.

        A draft that failed has no number: whoever asks again asks for the same one.
        """
        asked = _digest([request.role, self.name, self._parameters, _plain(request, self._here), self._seed])
        draft = next(number for number in count() if number not in self._taken[asked])
        self._taken[asked].add(draft)
        try:
            kept = await self._kept(self._folder / f"{_digest([asked, draft])}.json", request, on_delta)
        except BaseException as error:
            self._taken[asked].discard(draft)
            if isinstance(error, Exception):
                self.failures[asked] = error
            raise
        self.failures.pop(asked, None)
        self.nominal += self._priced(kept.usage)
        return kept

    async def _kept(self, path: Path, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        kept = _read(path, self._here)
        if kept is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            async with alone(path.with_suffix(".lock")):
                kept = _read(path, self._here)  # somebody else may have asked meanwhile
                if kept is None:
                    return await self._ask(path, request, on_delta)
        on_delta(Delta(text=kept.message.text))
        return kept

    async def _ask(self, path: Path, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        asked, taken = self.asked, Usage()
        try:
            answer = MEASURED(request, await self._insist(request, on_delta))
            taken = self._priced(answer.usage)
        finally:
            self.actual += taken
            self._after(self.asked - asked, taken)
        _write(path, answer, self._here)
        return answer

    async def _insist(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Ask, and again as long as that may help. Raises the last ModelError."""
        for attempt in count(1):
            self._before()
            self.asked += 1
            try:
                return await self._model.answer(request, on_delta)
            except ModelError as error:
                if not error.retryable or attempt >= self._attempts:
                    raise
                await anyio.sleep(self._wait(BackoffStarted(attempt, error.retry_after)))
        raise AssertionError("it counts for ever")

    def _priced(self, usage: Usage) -> Usage:
        return usage if self._price is None else self._price.of(usage)


def _digest(value: object) -> str:
    return blake2b(json.dumps(value, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def _plain(request: ModelRequest, here: str) -> list[object]:
    messages = [[type(message).__name__, repr(message).replace(here, HERE)] for message in request.messages]
    return [request.system_prompt.replace(here, HERE), messages, [repr(tool) for tool in request.tools]]


def _read(path: Path, here: str) -> Answer | None:
    """Return a kept answer; None where there is none that is whole."""
    try:
        return parsed(path.read_text(encoding="utf-8").replace(HERE, here), Answer, "answer")
    except (OSError, ValueError):
        return None


def _write(path: Path, answer: Answer, here: str) -> None:
    """Keep an answer: whole or not at all. Raises OSError."""
    draft = path.with_suffix(".part")
    text = json.dumps(asdict(answer), ensure_ascii=False)
    draft.write_text(text.replace(here, HERE), encoding="utf-8", errors="surrogatepass")
    draft.replace(path)
