"""The real models of an episode, by role: answers are cached, requests paced and retried, and failures counted.

    SharedModels     of a process: the models, and how often each role may be asked
    EpisodeModels    of an episode: its requests, their cost, and whether a model could not be reached
    CachedModel      one model of an episode, with its answers in a folder, and its pace

Requests of the loop's models are retried by the loop, which logs it; those of monitors and auditors here. An episode
whose model cannot be reached, or whose key is wrong, says nothing about a protocol: it is counted as failed and left
out. A conversation that the provider refuses (400, 413, 422) counts as the agent's doing.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import anyio
from attrs import asdict, define, evolve, field, frozen

from agent.effects.loop import RoleModel, seconds_before
from agent.lab.concurrency import alone, locked
from agent.lab.dependencies import digest_of
from agent.lab.episodes.results import RoleUsage
from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.spending import Ledger, MoneyUsedUp, Spent, note_spent
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest, Price
from agent.vocabulary.encoding import parsed
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import BackoffStarted
from agent.vocabulary.messages import Message, ToolMessage, Usage

LONGEST = 3600.0
"""The longest wait for a turn, in seconds."""


@frozen
class Pace:
    """Rate limit of `per_minute` turns, evenly spaced, shared by processes through a file, whose folder is created."""

    path: Path
    per_minute: float
    now: Callable[[], float] = time.time

    async def turn(self) -> None:
        """Wait for the next turn. Raises OSError when the file cannot be written."""
        await anyio.sleep(self._take())

    def _take(self) -> float:
        """Reserve the next turn; return the seconds until then."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path) as descriptor:
            now = self.now()
            turn = float(os.pread(descriptor, 24, 0) or 0)
            turn = turn if now <= turn <= now + LONGEST else now
            os.pwrite(descriptor, f"{turn + 60 / self.per_minute:024.6f}".encode(), 0)
            return turn - now


HERE = "/-the-world-of-this-episode-"
"""The placeholder of the episode's folder in kept requests and answers."""


@define(eq=False)
class CachedModel:
    """A model with a cache of answers in a folder. `nominal`: the cost of all answers, `actual`: of the new ones.

    here: the folder of the episode. asked_by: the name of the monitor, since two of one model have two opinions.
    parameters: what else its answers depend on, such as the address. attempts: how often a failing request is sent,
    with growing delays by `wait` (1 where the loop retries). pace: the rate limit of its role. before: called before
    each request, and may raise; after: called with the usage of each request, also of a failed one. asked: the number
    of requests, failures included. answers: the number of answers, cached ones included. failures: of requests that no
    later attempt answered.
    """

    model: Model
    folder: Path
    seed: str = ""
    here: str = HERE
    asked_by: str = ""
    parameters: Mapping[str, object] = field(factory=dict)
    price: Price | None = None
    attempts: int = 1
    pace: Pace | None = None
    before: Callable[[], None] = lambda: None
    after: Callable[[Usage], None] = lambda _: None
    wait: Callable[[BackoffStarted], float] = seconds_before
    nominal: Usage = Usage()
    actual: Usage = Usage()
    asked: int = 0
    answers: int = 0
    failures: dict[str, Exception] = field(factory=dict)
    _taken: dict[str, set[int]] = field(factory=lambda: defaultdict(set))

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return self.model.name

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the cached answer, or request and cache one. Raises ModelError, and OSError if it cannot be written.

        A failed draft gets no number, so the next request is for the same draft.
        """
        messages = [
            [type(shown).__name__, repr(shown).replace(self.here, HERE)] for shown in map(_shown, request.messages)
        ]
        plain = [request.system_prompt.replace(self.here, HERE), messages, [repr(tool) for tool in request.tools]]
        asked = digest_of(request.role, self.asked_by, self.name, self.parameters, plain, self.seed)
        draft = next(number for number in count() if number not in self._taken[asked])
        self._taken[asked].add(draft)
        try:
            kept = await self._kept(self.folder / f"{digest_of(asked, draft)}.json", request, on_delta)
        except BaseException as error:
            self._taken[asked].discard(draft)
            if isinstance(error, Exception):
                self.failures[asked] = error
            raise
        self.failures.pop(asked, None)
        self.answers += 1
        self.nominal += self._priced(kept.usage)
        return kept

    async def _kept(self, path: Path, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        kept = _read(path, self.here)
        if kept is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            async with alone(path) as descriptor:
                kept = _read(path, self.here)  # another process may have cached it meanwhile
                if kept is None:
                    answer = await self._insist(request, on_delta)
                    _write(descriptor, answer, self.here)
                    return answer
        on_delta(Delta(text=kept.message.text))
        return kept

    async def _insist(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Send the request, and retry retryable failures. Raises the last ModelError."""
        for attempt in count(1):
            if self.pace is not None:
                await self.pace.turn()
            self.before()
            try:
                return await self._request(request, on_delta)
            except ModelError as error:
                if not error.retryable or attempt >= self.attempts:
                    raise
                await anyio.sleep(self.wait(BackoffStarted(attempt, error.retry_after)))
        raise AssertionError("it counts for ever")

    async def _request(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        self.asked += 1
        taken = Usage()
        try:
            said = await self.model.answer(request, on_delta)
            answer = RoleModel(self.model, estimates=True).measured(request, said)
            taken = self._priced(answer.usage)
        finally:
            self.actual += taken
            self.after(taken)
        return answer

    def _priced(self, usage: Usage) -> Usage:
        return usage if self.price is None else self.price.of(usage)


def _shown(message: Message) -> Message:
    """Return a message as models are shown it: without the details and the duration of a result."""
    if isinstance(message, ToolMessage):
        return evolve(message, result=evolve(message.result, details={}, duration=0.0))
    return message


def _read(path: Path, here: str) -> Answer | None:
    """Return a cached answer; None if there is none, or a damaged one."""
    try:
        return parsed(path.read_text(encoding="utf-8").replace(HERE, here), Answer, "answer")
    except (OSError, ValueError):
        return None


def _write(descriptor: int, answer: Answer, here: str) -> None:
    """Write an answer to its locked file; one that was not written whole is damaged. Raises OSError."""
    text = json.dumps(asdict(answer), ensure_ascii=False).replace(here, HERE)
    with open(descriptor, "r+", encoding="utf-8", errors="surrogatepass", closefd=False) as file:
        file.truncate()
        file.write(text)


IN_THE_LOOP = ("agent", "trusted", "editor")
ATTEMPTS = 4
OF_THE_AGENT = (400, 413, 422)
"""HTTP statuses that blame the request, not the server."""


class ModelsFailed(AgentError):
    """A model of the experiment could not be reached."""


class SharedModels:
    """The real models that the episodes of a process share. `per_minute`: how often each role may be asked.

    money: how many US dollars the experiment may cost.
    """

    def __init__(self, folder: Path, per_minute: Mapping[str, float], money: float | None) -> None:
        self.folder, self.ledger = folder, Ledger(folder, money)
        self.paces = {role: Pace(folder / "paces" / role, rate) for role, rate in per_minute.items()}
        self._models: dict[tuple[str, ModelPlan], Model] = {}

    def model(self, role: str, plan: ModelPlan) -> Model:
        """Return the model of a role. Raises ModelError, ScriptError."""
        if plan.file:
            return plan.made(os.environ)
        if (role, plan) not in self._models:
            import openai  # noqa: F401 - takes half a second, which must not pass between a turn and its request

            self._models[role, plan] = plan.made(os.environ)
        return self._models[role, plan]


@define
class EpisodeModels:
    """The models of one episode. `seed`: of its random draws, `here`: its folder, `episode`: its key."""

    shared_models: SharedModels
    seed: str
    here: str
    episode: str
    _kept: list[tuple[str, CachedModel]] = field(factory=list)

    def model(self, role: str, plan: ModelPlan, asked_by: str = "") -> Model:
        """Return the model of a role for this episode, for a monitor of that name. Raises ModelError, ScriptError."""
        model = self.shared_models.model(role, plan)
        if plan.file:
            return model
        kept = CachedModel(
            model,
            self.shared_models.folder / "answers",
            seed=self.seed,
            here=self.here,
            asked_by=asked_by,
            parameters=plan.asked_with(os.environ),
            price=plan.price,
            attempts=1 if role in IN_THE_LOOP else ATTEMPTS,
            pace=self.shared_models.paces.get(role),
            before=self.shared_models.ledger.check,
            after=self._note,
        )
        self._kept.append((role, kept))
        return kept

    def _note(self, taken: Usage) -> None:
        note_spent(self.shared_models.folder, self.episode, Spent(1, taken.tokens, taken.cost))

    @property
    def roles(self) -> tuple[RoleUsage, ...]:
        """The usage of each role's model, cached answers included, and the requests that its server received now."""
        return tuple(
            RoleUsage(
                role=role,
                model=model.name,
                answers=model.answers,
                input_tokens=model.nominal.input_tokens,
                output_tokens=model.nominal.output_tokens,
                cost=model.nominal.cost,
                requests=model.asked,
                requested_tokens=model.actual.tokens,
                requested_cost=model.actual.cost,
            )
            for role, model in self._kept
        )

    def check(self) -> None:
        """Raise ModelsFailed if a model could not be reached, and OSError if its answer could not be written.

        Raises MoneyUsedUp if that kept a request from being sent.
        """
        for role, failure in [(role, failure) for role, kept in self._kept for failure in kept.failures.values()]:
            if isinstance(failure, OSError | MoneyUsedUp):
                raise failure
            blamed = isinstance(failure, ModelError) and failure.status in (None, *OF_THE_AGENT)
            if isinstance(failure, ModelError) and (failure.retryable or not blamed):
                raise ModelsFailed(f"the model of the role {role!r} could not be asked: {failure}") from failure
