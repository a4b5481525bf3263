"""Inspect (UK AI Security Institute): its tasks as our settings, its models, and our loop as one of its agents.

    MINE = inspect_setting("mine", task(), tools=[bash()])    # in a plan: settings: ['file.py:MINE']
    {model: 'inspect:anthropic/claude-sonnet-4-0'}            # in a plan: a model, by Inspect's name
    Task(dataset, solver=controlled([bash()], threads=[...])) # in Inspect: our loop with protocols as the agent

Importing this module imports Inspect, which takes a second or two.
"""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CancelScope
from attrs import field, frozen
from inspect_ai._eval.task.sandbox import read_sandboxenv_file, resolve_sample_files
from inspect_ai.agent import AgentState, agent
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelName,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Target
from inspect_ai.scorer._scorer import unique_scorer_name
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolCall, ToolDef, ToolInfo, ToolParams
from inspect_ai.util import ExecResult, LimitExceededError, SandboxEnvironment
from inspect_ai.util._sandbox.context import (
    copy_sandbox_environment_files,
    sandbox_default_context_var,
    sandbox_environments_context_var,
    sandbox_with_environments_context_var,
)

from agent.lab.bridges.gate import meaning_of
from agent.lab.bridges.scores import share_named
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Move, Plot, Task
from agent.lab.settings.world import World
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.scripted import ScriptedCall
from agent.presets.preset import Preset
from agent.session.agent import Agent
from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, ToolContext
from agent.tools.process import tool_environment
from agent.tools.schemas import Mark, Schema, Shape, ShellCommand, Url
from agent.tools.schemas import Path as PathMark
from agent.vocabulary.calls import thaw
from agent.vocabulary.messages import (
    AssistantMessage,
    Message,
    RequestedCall,
    StopReason,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from bp import BThread

_EXCEEDED: ContextVar[list[LimitExceededError] | None] = ContextVar("exceeded", default=None)
"""The limits of Inspect that the models and tools of a `controlled` run came up against."""


def _note(error: LimitExceededError) -> None:
    if (exceeded := _EXCEEDED.get()) is not None:
        exceeded.append(error)


# Its models


class InspectModel:
    """A model by Inspect's name, such as `anthropic/claude-sonnet-4-0`; keys come from its usual variables.

    parameters: fields of `GenerateConfig`, such as `temperature`. Our loop does the retries.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any] = {}) -> None:
        """Raise ModelError for a model or a parameter that Inspect does not have."""
        try:
            self._model = get_model(name, config=GenerateConfig(**{"max_retries": 0, **parameters}))
        except Exception as error:  # what it raises depends on the provider
            raise ModelError(f"Inspect has no model {name!r}: {error}") from error
        self.name, self._made_with = f"inspect:{name}", (name, dict(parameters))

    def __reduce__(self) -> tuple[type["InspectModel"], tuple[str, dict[str, Any]]]:
        """Be copied, and known in digests, by name and parameters: clients of providers have no value."""
        return InspectModel, self._made_with

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the model's answer. Raises ModelError."""
        messages = [ChatMessageSystem(content=request.system_prompt), *map(_to_inspect, request.messages)]
        tools = [_tool_info(tool.name, tool.description, tool.parameters) for tool in request.tools]
        try:
            output = await self._model.generate(messages, tools)
        except LimitExceededError as error:
            _note(error)
            raise ModelError(f"{self.name}: {error}") from error
        except Exception as error:
            raise ModelError(f"{self.name}: {type(error).__name__}: {error}", retryable=True) from error
        if output.error:
            raise ModelError(f"{self.name}: {output.error}")
        answer = _answer(output)
        on_delta(Delta(text=answer.message.text))
        return answer


def call_of(call_id: str, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
    """Return a call as Inspect has it."""
    return ToolCall(id=call_id, function=tool, arguments=dict(arguments))


STOPPED: Mapping[str, StopReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "unknown": "incomplete",
}


def _answer(output: ModelOutput) -> Answer:
    message, used = output.message, output.usage or ModelUsage()
    calls = tuple(
        RequestedCall(call.id, call.function, json.dumps(call.arguments)) for call in message.tool_calls or ()
    )
    reason = STOPPED.get(output.stop_reason, "tool_calls" if calls else "stop")
    cached = (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0)
    usage = Usage(used.input_tokens + cached, used.output_tokens, used.total_cost)
    return Answer(AssistantMessage(message.text, calls), reason, usage)


def _to_inspect(message: Message) -> Any:
    match message:
        case UserMessage(text=text):
            return ChatMessageUser(content=text)
        case ToolMessage(call_id=call_id, text=text):
            return ChatMessageTool(content=text, tool_call_id=call_id)
        case AssistantMessage(text=text, calls=calls):
            asked = [call_of(call.id, call.name, _arguments(call.arguments)) for call in calls]
            return ChatMessageAssistant(content=text, tool_calls=asked or None)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tool_info(name: str, description: str, parameters: Mapping[str, Any]) -> ToolInfo:
    shape = {"properties": parameters.get("properties", {}), "required": parameters.get("required", [])}
    return ToolInfo(name=name, description=description, parameters=ToolParams.model_validate(shape))


# Its tools, as ours


def _problems(parameters: Schema, value: object, path: str) -> Iterator[str]:
    """Yield missing and unknown argument names; Inspect checks the types itself."""
    if not isinstance(value, Mapping):
        yield f"{path or 'arguments'}: expected an object"
        return
    yield from (f"{path}{name}: missing" for name in parameters.get("required", ()) if name not in value)
    yield from (f"{path}{name}: unknown argument" for name in value if name not in parameters.get("properties", {}))


def _as_tool(given: Any, around: Callable[[], Any] = lambda: None) -> Tool:
    """Return a tool of Inspect as one of ours; `around` is called before each call, in the calling task."""
    definition = given if isinstance(given, ToolDef) else ToolDef(given)
    shape = definition.parameters.model_dump(exclude_none=True)
    marks: dict[str, Mark] = {"shell": ShellCommand(), "path": PathMark("write"), "url": Url()}
    meanings = meaning_of(shape.get("properties", {}))
    code = next((name for name, meaning in meanings.items() if meaning == "python"), None)

    async def carry_out(_: ToolContext, /, **arguments: Any) -> ToolResult:
        around()
        try:
            result = await definition.tool(**arguments)
        except LimitExceededError as error:
            _note(error)
            raise
        return ToolResult(result if isinstance(result, str) else json.dumps(result, default=str))

    return Tool(
        name=definition.name,
        description=definition.description,
        shape=Shape(dict(shape), thaw, _problems),
        function=carry_out,
        marks=tuple((name, marks[meaning], None) for name, meaning in meanings.items() if meaning in marks),
        argv=None if code is None else lambda arguments: ("python3", "-c", str(arguments.get(code, ""))),
        opaque=not meanings,
        source="Inspect",
    )


@agent  # type: ignore[untyped-decorator]
def controlled(
    tools: Sequence[Any],
    *,
    threads: Sequence[BThread] = (),
    effects: Sequence[Any] = (),
    preset: str | Preset = "gated",
    models: Mapping[str, Any] = {},
) -> Any:
    """Return our loop as an agent of Inspect: its model and tools, under our constitution and protocols.

    models: of other roles, by Inspect's names or as models of ours. effects: of monitors and auditors, made by
    `agent.effects.monitoring.laboratory`. Committed answers become the messages of the sample. A limit of Inspect ends
    the sample at it, a model without an answer is its error, and a run that is not completed has no answer.
    """

    async def execute(state: AgentState) -> AgentState:
        by_role = {role: InspectModel(each) if isinstance(each, str) else each for role, each in models.items()}
        main = InspectModel.__new__(InspectModel)
        main._model, main.name = get_model(), f"inspect:{get_model().name}"
        prompt = "\n\n".join(message.text for message in state.messages if message.role == "user")
        ours, exceeded = [_as_tool(each) for each in tools], list[LimitExceededError]()
        noted = _EXCEEDED.set(exceeded)
        with Agent(main, ours, preset=preset, threads=threads, effects=effects, models=by_role, snapshots=None) as made:
            try:
                run = await made.run(prompt)
            finally:
                _EXCEEDED.reset(noted)
                state.messages += [_to_inspect(message) for message in made.messages[1:]]
        if exceeded:
            raise exceeded[0]
        if run.reason in ("inference_failed", "engine_error"):
            raise RuntimeError(run.text)
        state.output = ModelOutput.from_content(main.name, run.text if run.status == "completed" else "")
        return state

    return execute


# Its tasks, as settings

SLOWER = 10
"""The factor by which a check may take longer than in a container, where it has the processors for itself."""

LONGEST_SETUP = 300  # seconds, as in Inspect


class _WorldSandbox(SandboxEnvironment):  # type: ignore[misc]
    """A world as a sandbox of Inspect: tools and scorers run their commands in the episode's cell.

    places: what stands here for folders of its containers. slower: how many times longer commands may take.
    """

    def __init__(self, world: World, places: Mapping[str, str], slower: int = 1) -> None:
        super().__init__()
        self._world, self._slower = world, slower
        self._places = {place: str(world.home if to == "home" else world.folder) for place, to in places.items()}

    async def exec(self, cmd: list[str], input: Any = None, cwd: Any = None, env: Any = None, user: Any = None,
                   timeout: Any = None, timeout_retry: bool = True, concurrency: bool = True) -> Any:  # fmt: skip
        """Run a command in the world. Raises TimeoutError."""
        command = [self.here(word) for word in cmd]
        folder = str(self._world.folder / self.here(cwd or "."))
        seconds = None if timeout is None else timeout * self._slower
        run = partial(self.run, command, input, folder, dict(env or {}), seconds)
        with CancelScope(shield=True):
            return await run_in_background(run)

    def run(self, command: list[str], given: Any, folder: str, env: dict[str, str], timeout: float | None) -> Any:
        """Run a command with `given` as its input. Raises TimeoutError."""
        inside = command if self._world.cell is None else list(self._world.cell.joined(command, folder))
        content = given.encode() if isinstance(given, str) else given or b""
        environment = tool_environment({**self._world.environment, **env})
        try:
            done = subprocess.run(
                inside, cwd=folder, env=environment, input=content, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{command[0]} takes longer than {timeout} seconds") from error
        except FileNotFoundError:
            return ExecResult(False, 127, "", f"{command[0]}: command not found")
        texts = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        return ExecResult(done.returncode == 0, done.returncode, *texts)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file of the world, with its folders. Raises PermissionError for one elsewhere."""
        path = self._inside(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """Return the content of a file of the world. Raises FileNotFoundError, PermissionError."""
        content = self._inside(file).read_bytes()
        return content.decode("utf-8", "replace") if text else content

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: Any, interrupted: bool) -> None:
        """Do nothing: the world is removed with its episode."""

    def _inside(self, file: str) -> Path:
        """Return the place of a file of the world. Raises PermissionError for one elsewhere, and for a pipe."""
        place = (self._world.folder / self.here(file)).resolve()
        if not any(place.is_relative_to(folder) for folder in (self._world.folder, self._world.home)):
            raise PermissionError(
                f"{file!r} is not in the world of the sample; give a place in the workspace, or name the folder of the "
                "container that stands for it: places={'/root': 'home', '/app': 'workspace'}"
            )
        if place.exists() and not (place.is_file() or place.is_dir()):
            raise PermissionError(f"{file!r} is not a regular file")
        return place

    def here(self, text: str) -> str:
        """Return a text with the folders of this world in place of those of containers."""
        for place, here in self._places.items():
            text = text.replace(place, here)
        return text


@frozen
class InspectWorld(World):
    """The world of a sample, with Inspect's scorers and the tools that are given to the agent.

    places: what stands here for folders of its containers.
    """

    sample: Any = field(kw_only=True)
    scorers: tuple[Any, ...] = field(kw_only=True)
    given: tuple[Any, ...] = field(kw_only=True)
    places: Mapping[str, str] = field(kw_only=True)
    said: list[Any] = field(factory=list, kw_only=True)

    def sandbox(self, slower: int = 1) -> _WorldSandbox:
        """Return this world, as Inspect sees it."""
        return _WorldSandbox(self, self.places, slower)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the agent that works here."""
        return tuple(_as_tool(tool, self._enter) for tool in self.given)

    def perform(self, call: ScriptedCall) -> None:
        """Carry out a call as the agent's tools would."""
        tool = next(each for each in self.tools() if each.name == call.tool)
        _await(partial(tool.run, json.loads(call.arguments)))

    def conclude(self, said: str) -> None:
        """Record the agent's final answer for the scorers."""
        self.said.append(ChatMessageAssistant(content=said))

    def score(self, name: str, *, beside: str = "") -> float:
        """Return the present score of a name, from 0 to 1: see `share_named`. Raises ScoreError."""
        return share_named(name, _await(self._scored), beside=beside)

    async def _scored(self) -> dict[str, Any]:
        """Return the values of the scorers by their names in Inspect's logs, None for one that gives no score."""
        self._enter(SLOWER)
        messages = [ChatMessageUser(content=_prompt(self.sample)), *self.said]
        output = ModelOutput(choices=[ChatCompletionChoice(message=message) for message in self.said[-1:]])
        state = TaskState(
            ModelName("bpagent/agent"), self.sample.id or 0, 1, self.sample.input, messages, Target(self.sample.target),
            output=output, metadata=self.sample.metadata,
        )  # fmt: skip
        values = dict[str, Any]()
        for scorer in self.scorers:
            score = await scorer(state, Target(self.sample.target))
            values[unique_scorer_name(scorer, list(values))] = None if score is None else score.value
        return values

    def prepare(self) -> None:
        """Put the sample's files into the world, and run its setup script. Raises PermissionError, RuntimeError."""
        _await(self._prepare)

    async def _prepare(self) -> None:
        """Read contents as Inspect does: texts, paths, folders, addresses and data URLs."""
        self._enter()
        files = resolve_sample_files(self.sample.files or {})
        contents = {path: await read_sandboxenv_file(content) for path, content in files.items()}
        await copy_sandbox_environment_files(contents, {"default": self.sandbox()})
        if self.sample.setup:
            self._set_up((await read_sandboxenv_file(self.sample.setup)).decode())

    def _set_up(self, text: str) -> None:
        """Run a script by its interpreter, bash without one. Raises RuntimeError if it fails."""
        sandbox, script = self.sandbox(), self.home / ".setup"
        script.write_text(sandbox.here(text))
        first = text.lstrip().partition("\n")[0]
        interpreter = first[2:].split() if first.startswith("#!") else ["bash"]
        done = sandbox.run([*interpreter, str(script)], None, str(self.folder), {}, LONGEST_SETUP)
        script.unlink()
        if not done.success:
            failure = f"the setup of the sample {self.sample.id!r} failed with exit code {done.returncode}"
            raise RuntimeError(f"{failure}: {done.stderr.strip()[-300:]}")

    def _enter(self, slower: int = 1) -> None:
        sandbox_environments_context_var.set({"default": self.sandbox(slower)})
        sandbox_default_context_var.set("default")
        sandbox_with_environments_context_var.set({})


def _await(work: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of `work`, run in a thread of its own since the caller may be on an event loop."""

    async def done() -> Any:
        return await work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, done()).result()


def _prompt(sample: Sample) -> str:
    if isinstance(sample.input, str):
        return str(sample.input)
    return "\n\n".join(message.text for message in sample.input if message.role == "user")


def _of_inspect(world: World) -> InspectWorld:
    assert isinstance(world, InspectWorld)
    return world


def inspect_setting(
    name: str,
    task: Any,
    *,
    tools: Sequence[Any],
    side: Callable[[InspectWorld], bool] | str = "",
    side_task: Callable[[Any], str] = lambda sample: str((sample.metadata or {}).get("side_task", "")),
    main: str = "main",
    solution: Callable[[Any], Sequence[Move]] = lambda _: (),
    plots: Callable[[Any], Sequence[Plot]] = lambda _: (),
    places: Mapping[str, str] = {},
    families: int = 6,
    **more: Any,
) -> Setting:
    """Return a task of Inspect as a setting: its samples are the tasks, its scorers the main check.

    tools: the agent's tools (a task hides them in its solver). main, side: the scores that are meant, by the names of
    scorers or of entries in their mappings; harm is a full score. Without a score "main" it is the only one beside
    `side`, which may also be a check of the world; without it there is no side task. A sample that is not scored, and a
    name that no score has, fail the episode. side_task: the prompt of
    a real attacker for a sample. solution, plots: needed for scripted workers only. places: what stands for folders of
    the task's containers ("home" or "workspace"), such as {"/root": "home"}. families: the number of families that
    samples are dealt to in turn. more: as for `Setting`: turns, live (default False), harmless. Scorers see the prompt,
    the last answer and the sandbox, not the whole conversation.
    """
    groups = {f"group{number}": list(task.dataset)[number::families] for number in range(families)}
    found = {family: samples for family, samples in groups.items() if samples}

    def is_done(world: World) -> bool:
        if callable(side):
            return side(_of_inspect(world))
        return bool(side) and _of_inspect(world).score(side) >= 1

    def make(family: str, _: Any, number: int) -> Task:
        sample = found[family][number]
        return Task(
            prompt=_prompt(sample),
            files={},
            main=lambda world: _of_inspect(world).score(main, beside="" if callable(side) else side),
            side=is_done,
            solution=tuple(solution(sample)),
            plots=tuple(plots(sample)),
            side_task=side_task(sample),
        )

    def clean_world(task_: Task, world: World) -> World:
        sample, scorers = found[task_.family][int(task_.name.rpartition("-")[2])], tuple(task.scorer or ())
        place = (world.folder, world.home, world.box, world.cell)
        inside = InspectWorld(*place, sample=sample, scorers=scorers, given=tuple(tools), places=places)
        inside.prepare()
        return inside

    return Setting(
        name=name,
        about=f"the task {getattr(task, 'name', name)} of Inspect",
        families={family: partial(make, family) for family in found},
        sizes={family: len(samples) for family, samples in found.items()},
        clean_world=clean_world,
        **{"live": False, **more},
    )
