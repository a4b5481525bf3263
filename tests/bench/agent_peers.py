"""What a turn costs in other agent loops, where they are installed: a model and a tool that do nothing, in one run.

`pip install pydantic-ai-slim openai-agents mini-swe-agent`, in an environment that has this project too.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

from tests.bench.rows import Row
from tests.bench.timing import scaled
from tests.bench.turns import MILLI, cheapest

__all__ = ["measure"]

TURNS = (50, 200, 800)
MANY = 200  # turns
Peer = Callable[[int], Callable[[], object]]
"""From a number of turns to what runs them; making it is not timed."""


def measure(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds of CPU per turn at 50, 200 and 800 turns, in proportion to this loop's."""
    for turns in TURNS:
        count = scaled(turns, size)
        ours = cheapest(count, log=True)
        for name, (module, peer) in PEERS.items():
            what = f"{name}, {turns} turns"
            if find_spec(module) is None:
                yield Row(what, None, "ms/turn", note=f"skipped: {name} is not installed")
            else:
                yield Row(what, per_turn(peer, count), "ms/turn", ours, "this loop")


def per_turn(peer: Peer, turns: int, rounds: int = 3) -> float:
    """Return the least of several runs, in milliseconds per turn; long runs of some take a minute, so there is one."""
    rounds = rounds if turns <= MANY else 1
    return min(_cpu(peer(turns)) for _ in range(rounds)) / turns * MILLI


def _cpu(run: Callable[[], object]) -> float:
    begin = process_time()
    run()
    return process_time() - begin


def pydantic_ai(turns: int) -> Callable[[], object]:
    """An agent of pydantic-ai with a function for a model."""
    ai, messages, models, usage = map(
        _imported, ("pydantic_ai", "pydantic_ai.messages", "pydantic_ai.models.function", "pydantic_ai.usage")
    )
    left = iter(range(turns))

    def answer(history: Any, facts: Any) -> Any:
        number = next(left, None)
        part = messages.TextPart("Done.") if number is None else messages.ToolCallPart("do_nothing", {}, f"c{number}")
        return messages.ModelResponse([part])

    async def do_nothing() -> str:
        """Do nothing."""
        return "done"

    agent = ai.Agent(models.FunctionModel(answer), tools=[do_nothing])
    limits = usage.UsageLimits(request_limit=None)
    return lambda: asyncio.run(agent.run("Go on.", usage_limits=limits))


def openai_agents(turns: int) -> Callable[[], object]:
    """An agent of openai-agents with a model of our own."""
    agents, responses = _imported("agents"), _imported("openai.types.responses")
    agents.set_tracing_disabled(True)
    left = iter(range(turns))

    class Model(agents.Model):  # type: ignore[misc, name-defined]
        async def get_response(self, *_: Any, **__: Any) -> Any:
            return agents.ModelResponse(output=[self._next()], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        def _next(self) -> Any:
            number = next(left, None)
            if number is None:
                text = responses.ResponseOutputText(text="Done.", type="output_text", annotations=[])
                return responses.ResponseOutputMessage(
                    id="m", role="assistant", status="completed", type="message", content=[text]
                )
            return responses.ResponseFunctionToolCall(
                call_id=f"c{number}", name="do_nothing", arguments="{}", type="function_call"
            )

    async def do_nothing() -> str:
        """Do nothing."""
        return "done"

    agent = agents.Agent(name="a", model=Model(), tools=[agents.function_tool(do_nothing)])
    return lambda: asyncio.run(agents.Runner.run(agent, "Go on.", max_turns=turns + 2))


def mini_swe_agent(turns: int) -> Callable[[], object]:
    """The default agent of mini-swe-agent with its own deterministic model and an environment that does nothing."""
    default, models, exceptions = map(
        _imported, ("minisweagent.agents.default", "minisweagent.models.test_models", "minisweagent.exceptions")
    )
    logging.getLogger("agent").setLevel(logging.ERROR)

    class Environment:
        config: Any = None

        def execute(self, action: Any, *_: Any, **__: Any) -> dict[str, Any]:
            if action["command"] == "end":
                over = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}}
                raise exceptions.Submitted(over)
            return {"output": "done", "returncode": 0, "exception_info": ""}

        def get_template_vars(self, **_: Any) -> dict[str, Any]:
            return {}

        def serialize(self) -> dict[str, Any]:
            return {}

    commands = [*["do nothing"] * turns, "end"]
    outputs = [models.make_output("", [{"command": command}], cost=0.0) for command in commands]
    model = models.DeterministicModel(outputs=outputs)
    agent = default.DefaultAgent(model, Environment(), system_template="Go.", instance_template="Go on.", cost_limit=0)
    return lambda: agent.run("Go on.")


def _imported(name: str) -> Any:
    return import_module(name)


PEERS: dict[str, tuple[str, Peer]] = {
    "pydantic-ai": ("pydantic_ai", pydantic_ai),
    "openai-agents": ("agents", openai_agents),
    "mini-swe-agent": ("minisweagent", mini_swe_agent),
}
