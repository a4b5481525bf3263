"""Builds agents from options, configuration files or a log: models, tools, b-threads and effects."""

import inspect
import os
import re
import shlex
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from attrs import evolve, field, fields, frozen, has

from agent.cli.config import chosen_preset, existing_folder, layers, model_name, tell_unused
from agent.cli.errors import Mistake, say
from agent.cli.runs import new_log, scratches_of
from agent.effects.approval import Approver
from agent.history.rebuilding import joining, recorded_bthreads
from agent.log.reading import RecordedRun
from agent.models.model import Model
from agent.models.openai_model import Api, model_from_name
from agent.models.scripted import ScriptedModel
from agent.presets.equipment import equip
from agent.presets.preset import Preset
from agent.session.agent import Agent
from agent.session.resume import resume
from agent.tools.definition import Tool
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import Category
from agent.vocabulary.errors import CannotStart, ToolError, meant
from bp import BThread

if TYPE_CHECKING:
    from agent.protocols.policies import Match
    from bp.runner import Effect


# Protocols, tools, monitors and auditors.


def load_protocols(names: Iterable[str]) -> tuple[BThread, ...]:
    """Return the b-threads of these names, in order. Raises Mistake, which lists the known ones."""
    return tuple(bthread for name in names for bthread in _load(name))


def _load(name: str) -> tuple[BThread, ...]:
    from agent.protocols import entry_of, is_own

    try:
        entry = entry_of(name)
    except ValueError as error:
        cure = "" if is_own(name) else "; your own: FILE.py:NAME or module:NAME"
        raise Mistake(f"--protocol: {error}{cure}") from error
    try:
        return entry.bthreads()
    except ValueError as error:
        raise Mistake(f"--protocol {name!r}: {error}") from error
    except TypeError as error:
        raise Mistake(f"--protocol {name!r} needs arguments ({error}); write NAME(key=value)") from error


def tools_of(
    preset: Preset,
    workspace: Path,
    model: Model,
    log: Path | None = None,
    approve: Approver | None = None,
    **inherited: Any,
) -> tuple[Tool, ...]:
    """Return the tools of a preset over a workspace; `task` among them if the preset has it.

    The subagents of `task` have the other tools, ask `model`, and keep their logs beside `log`; `inherited`: further
    options from their parent (see `SubagentStore`). Raises OptionError for an invalid file of tools.
    """
    own = () if log is None else (str(log.absolute()),)
    scratches = "" if log is None else str(scratches_of(log))
    tools = equip(preset, workspace, own, scratches)
    if preset.tools not in ("all", "coding"):
        return tools
    from agent.session.subagents import SubagentStore, make_task

    store = SubagentStore(
        model,
        preset,
        lambda: equip(preset, workspace, own, scratches),
        logs=None if log is None else log.with_name(f"{log.stem}-tasks"),
        parent="" if log is None else str(log),
        approve=approve,
        **inherited,
    )
    return (*tools, evolve(make_task(store), workspace=Workspace(workspace)))


def check_roles(arguments: Namespace) -> None:
    """Raise Mistake for the model of a role that no protocol has; protocols in the user's files may have any."""
    from agent.protocols import PROTOCOLS

    known = {role for entry in PROTOCOLS for role in entry.roles}
    if any(":" in name for name in arguments.protocol):
        return
    for role in (pair.partition("=")[0].strip() for pair in arguments.role):
        if role not in known:
            raise Mistake(f"--role: there is no role {role!r}; {meant(role, sorted(known))}")


def _equipment(arguments: Namespace, threads: Sequence[BThread], secrets: Iterable[str]) -> dict[str, Any]:
    """Return the options of an agent that its subagents share. Raises Mistake for missing monitors and roles."""
    _check_needs(threads, arguments)
    effects: Sequence[Callable[[Agent], Effect]] = ()
    if threads or arguments.monitor or arguments.auditor:
        from agent.effects.monitoring import MonitoringAuditor, laboratory

        monitors = {name: _judge("--monitor", what) for name, what in _pairs(arguments, "monitor")}
        auditors = {name: _judge("--auditor", what, ("audit", "score")) for name, what in _pairs(arguments, "auditor")}
        as_auditors = {
            name: each if callable(getattr(each, "audit", None)) else MonitoringAuditor(each)
            for name, each in auditors.items()
        }
        effects = laboratory(monitors, as_auditors)
    return {
        "secrets": secrets_of(secrets, os.environ),
        "threads": tuple(threads),
        "effects": effects,
        "models": {role: model_from_name(name, os.environ) for role, name in _pairs(arguments, "role")},
    }


def _pairs(arguments: Namespace, option: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `--role`, `--monitor` or `--auditor`: a name and a value."""
    for pair in getattr(arguments, option):
        name, equals, what = pair.partition("=")
        if not (name.strip() and equals and what):
            raise Mistake(f"--{option} {pair!r} is no pair; write --{option} {name.strip() or 'NAME'}={GIVEN[option]}")
        yield name.strip(), what


def _judge(option: str, what: str, methods: Sequence[str] = ("score",)) -> Any:
    """Return a named monitor, or an object of the user with one of these methods. Raises Mistake."""
    from agent.protocols import own_value
    from agent.protocols.monitors import ConstantMonitor, ConstitutionMonitor, PromptedMonitor

    kind, _, rest = what.partition(":")
    match kind:
        case "constitution" if not rest:
            return ConstitutionMonitor()
        case "constant":
            with suppress(ValueError):
                if 0 <= (score := float(rest)) <= 1:
                    return ConstantMonitor(score)
            raise Mistake(f"{option} {what!r} gives no score; write a number from 0 to 1, such as constant:0.2")
        case "model":
            return PromptedMonitor(model_from_name(rest, os.environ))
    if ":" not in what.partition("(")[0].strip(":"):
        kinds = "constitution, constant:0.2, model:MODEL, FILE.py:NAME"
        raise Mistake(f"{option} {what!r} names no monitor; write {kinds}")
    try:
        found = own_value(what, "monitor")
    except ValueError as error:
        raise Mistake(str(error)) from error
    if not any(callable(getattr(found, method, None)) for method in methods):
        raise Mistake(f"{option} {what!r} is {type(found).__name__}; a monitor has a method `score(evidence)`")
    return found


# MCP servers, started and ended with the agent. A log names those of its run; a resumed run starts those given again.
#
# --mcp 'npx -y some-server'                      its tools, under their own names
# --mcp 'notes: python server.py'                 under names that begin with notes_
# --mcp 'notes[list=read]: python server.py'      with the category of a tool: read, write or admin; *=read for all
# --mcp 'notes[list=read,*=off]: ...'             without all others
# --mcp 'TOKEN=$MY_TOKEN python server.py'        with a variable; the value of $MY_TOKEN is in no log
# --mcp 'Authorization=$TOKEN https://host/mcp'   over HTTP, with a header

VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)=(.*)", re.DOTALL)  # or a header of HTTP
PREFIX = re.compile(r"([A-Za-z0-9_-]*)(?:\[([^\]]*)\])?:")


@frozen
class McpServer:
    """A server: its row, the prefix of its tools' names, its command and variables, or its address and headers."""

    row: str
    command: tuple[str, ...]
    prefix: str = ""
    variables: Mapping[str, str] = field(factory=dict, repr=False)
    categories: Mapping[str, Category | Literal["off"]] = field(factory=dict)


def read_server(row: str, environ: Mapping[str, str]) -> McpServer:
    """Return the server of a row. Raises Mistake."""
    try:
        words = shlex.split(row)
    except ValueError as error:
        raise Mistake(f"--mcp {row!r} is no command: {str(error).lower()}") from error
    prefix = PREFIX.fullmatch(words[0]) if words else None
    words = words[1:] if prefix else words
    variables = {}
    while words and (given := VARIABLE.fullmatch(words[0])):
        variables[given[1]] = _looked_up(given[2], row, environ)
        words = words[1:]
    if not words:
        raise Mistake(f"--mcp {row!r} names no program; write --mcp 'PROGRAM ARGUMENTS', or --mcp 'NAME: PROGRAM ...'")
    name = f"{prefix[1]}_" if prefix and prefix[1] else ""
    return McpServer(row, tuple(words), name, variables, _categories(prefix[2] or "", row) if prefix else {})


def _categories(text: str, row: str) -> dict[str, Category | Literal["off"]]:
    """Return the declared categories of tools: "list=read,add=off"."""
    declared: dict[str, Category | Literal["off"]] = {}
    for part in filter(None, text.split(",")):
        tool, _, named = part.partition("=")
        category: Any = named if named in (*get_args(Category), "off") else None
        if not tool or category is None:
            raise Mistake(f"--mcp {row!r}: {part!r} declares no category; write TOOL=read, =write, =admin or =off")
        declared[tool] = category
    return declared


def _looked_up(value: str, row: str, environ: Mapping[str, str]) -> str:
    if not value.startswith("$"):
        return value
    name = value[1:].strip("{}")
    if name not in environ:
        raise Mistake(f"--mcp {row!r}: the variable {name} is not set; set it")
    return environ[name]


@asynccontextmanager
async def serving(servers: Sequence[McpServer]) -> AsyncIterator[tuple[Tool, ...]]:
    """Run servers while the block lasts, and yield their tools. Raises Mistake for one that does not start."""
    if not servers:
        yield ()
        return
    async with AsyncExitStack() as stack:
        yield tuple([tool for server in servers for tool in await _opened(server, stack)])


async def _opened(server: McpServer, stack: AsyncExitStack) -> tuple[Tool, ...]:
    from agent.tools.mcp import mcp_tools

    try:
        opened = mcp_tools(
            server.command[0] if server.command[0].startswith(("http://", "https://")) else server.command,
            env=server.variables,
            headers=server.variables,
            prefix=server.prefix,
            categories=server.categories,
        )
        return await stack.enter_async_context(opened)
    except Exception as error:  # of the client, too
        raise Mistake(f"--mcp {server.row!r}: {_reason(error)}") from error


def joined(own: Iterable[Tool], more: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return both; a server's tool may not replace another one. Raises Mistake."""
    tools = {tool.name: tool for tool in own}
    for tool in more:
        if tool.name in tools:
            cure = "give the server a name: --mcp 'NAME: ...'"
            raise Mistake(f"{tool.source} has a tool {tool.name!r}, and there is one already; {cure}")
        tools[tool.name] = tool
    return tuple(tools.values())


def _reason(error: BaseException) -> str:
    if isinstance(error, CannotStart | ToolError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it does not say what tools it has; is it an MCP server that speaks over standard input and output?"
    return f"it is no MCP server, or ended at once ({error}); run the command by itself to see why"


def servers_of(arguments: Namespace) -> tuple[McpServer, ...]:
    """Return the servers of the configuration and of `--mcp`, in this order. Raises Mistake, OptionError."""
    rows = (*(row for file in layers(arguments) for row in file.servers), *arguments.mcp)
    return tuple(read_server(row, os.environ) for row in rows)


def servers_of_log(arguments: Namespace, recorded: RecordedRun) -> tuple[McpServer, ...]:
    """Return the servers of `--mcp`, for a run that had servers. Raises Mistake when they are not given again."""
    had = [row for row in str((recorded.header.get("about") or {}).get("mcp") or "").splitlines() if row]
    if had and not arguments.mcp:
        again = " ".join(f"--mcp {shlex.quote(row)}" for row in had)
        raise Mistake(f"the run had tools of MCP servers, which a log alone does not start; give them again: {again}")
    return tuple(read_server(row, os.environ) for row in arguments.mcp)


# Models, secrets and instructions.

INFERENCES = ("inference_finished", "inference_failed")


def nameable(model: str) -> str:
    """Return a model's name for a header: a script with its absolute path, a server without its password."""
    if model.startswith("script:"):
        return f"script:{Path(model.removeprefix('script:')).absolute()}"
    credentials, at, _ = urlsplit(model).netloc.rpartition("@")
    return model.replace(f"{credentials}@", "", 1) if at else model


def model_of(recorded: RecordedRun, given: str, environ: Mapping[str, str]) -> Model:
    """Return the model of a log, or the `given` one; a script continues after the last answer that was its own."""
    about = recorded.header.get("about")
    known = about.get("model") if isinstance(about, Mapping) else None
    name = given or str(known or recorded.header.get("model") or "")
    api: Api = "responses" if recorded.header.get("api") == "responses" else "chat"
    model = model_from_name(name, environ, api=api)
    if isinstance(model, ScriptedModel) and not given:
        begun = (recorded.header.get("branch") or {}).get("model", 0)
        model.skip(sum(record["name"] in INFERENCES and record["step"] > begun for record in recorded.records))
    return model


def secrets_of(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in environment variables of these names. Raises Mistake for an unset one."""
    secrets = {}
    for name in names:
        if not environ.get(name):
            raise Mistake(f"the secret {name!r} cannot be masked, since there is no variable ${name}; set it")
        secrets[name] = environ[name]
    return secrets


INSTRUCTIONS, LONGEST_INSTRUCTIONS = "AGENTS.md", 32 * 1024  # bytes


def instructions(workspace: Path) -> str:
    """Return AGENTS.md of a workspace as a part of the system prompt; empty without one."""
    path = workspace / INSTRUCTIONS
    if path.is_symlink() or not path.is_file():  # a link could show the model any file of this machine
        return ""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            text = file.read(LONGEST_INSTRUCTIONS).decode("utf-8-sig", "replace").strip()
    except OSError:
        return ""
    return f"\n\n{INSTRUCTIONS} of this project says how to work here; it changes no rule:\n\n{text}" if text else ""


# The agent of a command line, or of a log.

Maker = Callable[..., Agent]
"""Makes an agent from additional tools, an approver, and the listeners of a user interface, as options of `Agent`."""


def new_agent(arguments: Namespace, *, later: bool = False) -> tuple[Preset, Maker, tuple[McpServer, ...]]:
    """Return the preset and the servers of the command line, and the function that makes the agent.

    `later`: the run rests when a user has to decide. Raises for wrong input.
    """
    check_roles(arguments)
    workspace = existing_folder(arguments.workspace)
    files = layers(arguments)
    tell_unused(files)
    preset = chosen_preset(arguments)
    arguments.model = model_name(arguments, files)
    model = model_from_name(arguments.model, os.environ, api=arguments.api)
    equipment = _equipment(arguments, load_protocols(arguments.protocol), arguments.secret)
    servers = servers_of(arguments)
    files_of_protocols = (name.rpartition(":") for name in arguments.protocol if ".py:" in name)
    of_header = {
        "model": nameable(arguments.model),
        "protocols": "\n".join(f"{Path(file).absolute()}:{name}" for file, _, name in files_of_protocols),
        "mcp": "\n".join(server.row for server in servers),
        "approvals": "page" if getattr(arguments, "approvals", "now") == "page" else "",  # resume waits for it, too
    }
    about = {name: value for name, value in of_header.items() if value}
    log = new_log(arguments.log, datetime.now())

    def make(more: tuple[Tool, ...], approve: Approver, **watching: Any) -> Agent:
        tools = joined(tools_of(preset, workspace, model, log, approve, **equipment), more)
        names = tuple(dict.fromkeys(tool.name for tool in (*preset.own_tools(), *tools)))
        _tell_unknown_tools(equipment["threads"], names)
        return Agent(
            model,
            tools,
            preset=preset,
            system_prompt=preset.prompt(workspace=str(workspace), tools=names) + instructions(workspace),
            approve="later" if later else approve,
            log=log,
            about=about,
            **equipment,
            **watching,
        )

    return preset, make, servers


def agent_of_log(
    arguments: Namespace, recorded: RecordedRun, *, later: bool = False
) -> tuple[Preset, Maker, tuple[McpServer, ...]]:
    """Return the same for the agent of a log. Raises for wrong input, and for another program."""
    threads = load_protocols(arguments.protocol)
    preset, beside = recorded_bthreads(recorded, threads)
    workspace = existing_folder(str(recorded.header.get("workspace")), "the log's workspace")
    model = model_of(recorded, arguments.model, os.environ)
    equipment = _equipment(arguments, (*threads, *map(joining, beside)), recorded.header.get("secrets") or ())
    servers = servers_of_log(arguments, recorded)

    def make(more: tuple[Tool, ...], approve: Approver, **watching: Any) -> Agent:
        tools = joined(tools_of(preset, workspace, model, recorded.path, approve, **equipment), more)
        asked = "later" if later else approve
        return resume(recorded.path, model, tools, approve=asked, **(equipment | {"threads": threads}), **watching)

    return preset, make, servers


OWN = "agent.protocols"
GIVEN = {"monitor": "constitution", "auditor": "model:MODEL", "role": "MODEL"}


def _check_needs(threads: Sequence[BThread], arguments: Namespace) -> None:
    """Raise Mistake for a monitor, an auditor or a role that a shipped protocol needs and the user has not named."""
    for thread in threads:
        if str(thread.function.__module__).startswith(OWN):
            for what, name in _asked(thread):
                if name not in {pair.partition("=")[0].strip() for pair in getattr(arguments, what)}:
                    raise Mistake(f"{thread.name} needs the {what} {name!r}; give --{what} {name}={GIVEN[what]}")


def _asked(thread: BThread) -> Iterator[tuple[str, str]]:
    """Yield the monitors and auditors of a b-thread, by the names of its parameters, and the roles of models."""
    from agent.protocols import PROTOCOLS

    given = inspect.signature(thread.function).bind(*thread.args, **thread.kwargs)
    given.apply_defaults()
    for what in ("monitor", "auditor"):
        one: Any = given.arguments.get(what, "")
        for name in (one, *given.arguments.get(f"{what}s", ())):
            if isinstance(name, str) and name:
                yield what, name
    for role in next((entry.roles for entry in PROTOCOLS if entry.name == thread.name), ()):
        yield "role", role


def _tell_unknown_tools(threads: Sequence[BThread], tools: Iterable[str]) -> None:
    """Warn about unknown tools in temporal policies: such a policy never applies to a call."""
    known = sorted(tools)
    policies = [thread for thread in threads if str(thread.function.__module__) == f"{OWN}.policies"]
    named = {name: policy.name for policy in policies for match in _matches(policy.args) for name in match.tools}
    for name, policy in named.items():
        if name not in known:
            say(f"the policy {policy!r} names a tool {name!r}, and there is none; {meant(name, known)}")


def _matches(value: Any) -> "Iterator[Match]":
    from agent.protocols.policies import Match

    if isinstance(value, Match):
        yield value
    elif has(type(value)):
        yield from _matches(tuple(getattr(value, field.name) for field in fields(type(value))))
    elif isinstance(value, tuple):
        for each in value:
            yield from _matches(each)
