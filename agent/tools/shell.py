"""The tool `bash` under any name: runs one shell command, and answers in words or an envelope (S0, S2-S4)."""

import inspect
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict, Unpack

import anyio
from attrs import Factory, evolve, field, frozen, mutable, validators

from agent.tools.background import Processes, ended_since
from agent.tools.blocking import run_in_background
from agent.tools.definition import PerAgent, Tool, ToolContext, tool
from agent.tools.output import Retained, Retention
from agent.tools.process import Finished, inherited_environment, run_process, shell_words, signal_name, tool_environment
from agent.tools.programs import find_program
from agent.tools.schemas import Background, Limits, ShellCommand
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import AnswerCommitted, ToolFinished
from agent.vocabulary.messages import ToolResult
from bp import Event

if TYPE_CHECKING:
    from agent.tools.sandbox.put_back import Guard
    from agent.tools.sandbox.sandbox import Sandbox

EnvironmentHook = Callable[[str], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Called with the working directory before each command, returns variables to add: the hook `shell.env` of S2."""


_POSITIVE: Any = validators.optional(validators.gt(0))


@frozen
class ShellOptions:
    """Options of commands. Times are in seconds, None is no limit.

    shell: the program and options before a command. timeout: for calls without one; others are clamped to between
    shortest_timeout and longest_timeout, with a notice. retention: bounds of the output. separate: report standard
    error separately. nonzero_is_error: an exit code other than 0 is an error. inherit: commands get all of our
    environment, else the allowed variables; env: variables to add. prefix: put before every command. hook: returns more
    variables. form: text; with details of truncation (S2); or the envelope of S4. compact: its limit in characters.
    sandbox: confines commands.
    """

    shell: tuple[str, ...] = ("bash", "-c")
    timeout: float | None = field(default=120.0, validator=_POSITIVE)
    longest_timeout: float | None = field(default=600.0, validator=_POSITIVE)
    shortest_timeout: float | None = field(default=None, validator=_POSITIVE)
    retention: Retention = Retention()
    separate: bool = False
    nonzero_is_error: bool = False
    inherit: bool = False
    env: Mapping[str, str] = field(factory=dict)
    prefix: str = ""
    hook: EnvironmentHook | None = None
    form: Literal["text", "details", "envelope"] = "text"
    compact: int | None = None
    sandbox: "Sandbox | None" = None

    @property
    def timeout_words(self) -> str:
        """The description of the parameter `timeout` for the model."""
        least = "" if self.shortest_timeout is None else f", at least {self.shortest_timeout:g}"
        most = "" if self.longest_timeout is None else f", at most {self.longest_timeout:g}"
        return f"seconds until the command is killed{least}{most}"

    async def environment(self, cwd: str, rights: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the environment of a command: ours or the allowed variables, then the added ones, then the hook's."""
        env = {**inherited_environment(), **self.env} if self.inherit else tool_environment(self.env)
        if self.sandbox is not None:
            env = self.sandbox.environment(env, rights)
        if self.hook is None:
            return env
        given = self.hook(cwd)
        found: Mapping[str, str] = await given if inspect.isawaitable(given) else given
        return {**env, **found}

    def before(self, cwd: str, rights: tuple[str, ...]) -> tuple[str, ...]:
        """Return the words before a command in `cwd` that confine it. Raises CannotStart."""
        return () if self.sandbox is None else self.sandbox.prefix(cwd, rights)

    def release(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """End what the environment of a command opened, when it is over; return the hosts that were refused to it."""
        return () if self.sandbox is None else self.sandbox.release(environment)

    def shell_after(self, before: tuple[str, ...], shell: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the words of a shell with those before it; its path where a yes has lifted the whole sandbox."""
        shell = shell or self.shell
        if before or self.sandbox is None or self.sandbox.level == "none":
            return (*before, *shell)
        return (find_program(shell[0], self.sandbox.writable) or shell[0], *shell[1:])

    def seconds(self, asked: float | None) -> tuple[float | None, str]:
        """Return the timeout for a requested one, and a notice if it differs."""
        if asked is None:
            return self.timeout, ""
        longest = None if self.longest_timeout is None else max(self.longest_timeout, self.timeout or 0)
        if longest is not None and asked > longest:
            return longest, f"[timeout of {asked:g} seconds clamped to {longest:g}, the longest there is]"
        shortest = min(self.shortest_timeout or 0, self.timeout or math.inf)
        if asked < shortest:
            return shortest, f"[timeout of {asked:g} seconds raised to {shortest:g}, the shortest there is]"
        return asked, ""


class How(TypedDict):
    """Options of one command: folder, environment, timeout in seconds, and the receivers of its output.

    `errors`, if given, gets the standard error; `progress` gets all output as it arrives.
    """

    cwd: str
    env: Mapping[str, str]
    timeout: float | None
    output: Retained
    errors: Retained | None
    progress: Callable[[str], None] | None


class Commands(Protocol):
    """Runs a shell command to its end, and leaves no process behind."""

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` by `shell`.

        Raises CannotStart if nothing was started; ends all processes when it is cancelled.
        """


class LocalCommands:
    """Runs commands on this machine."""

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` as `Commands` says."""
        with shell_words(shell, command) as (argv, descriptors):
            return await run_process(argv, pass_fds=descriptors, **how)


EMPTY = "the command is empty; give one"

SCHEMA = "z2e.tool_observation.v1"
OUTPUT_CHARACTERS, RAW_CHARACTERS = 6000, 2000


def _now() -> datetime:
    return datetime.now(UTC)


@mutable
class Session:
    """The counters of one agent's commands, since the first session began.

    `turns`: answers of the model, as far as known; `calls`: requested commands; `executed`: those that ran;
    `observations`: answers to calls.
    """

    now: Callable[[], datetime] = _now
    started: datetime = field(init=False, default=Factory(lambda self: self.now(), takes_self=True))
    turns: int = 0
    calls: int = 0
    executed: int = 0
    observations: int = 0
    _latest: Event | None = field(init=False, default=None)

    def hear(self, event: Event) -> None:
        """Count a turn, once, however many tools share the session."""
        if isinstance(event, AnswerCommitted) and event is not self._latest:
            self._latest = event
            self.turns += 1

    def restore(self, finished: ToolFinished) -> None:
        """Continue the counts from the envelope of a recorded command."""
        try:
            told = json.loads(finished.result.text)["session"]
            started = datetime.fromisoformat(told["started_at"])
        except (ValueError, KeyError, TypeError):
            return  # the call had no envelope
        self.started, self.turns = started, max(self.turns, told["steps"])
        self.executed, self.observations = told["executed_commands"], told["observations"]

    def observe(
        self, tool: Mapping[str, str], ended: "Finished | str", notes: Sequence[str], most: int | None
    ) -> dict[str, Any]:
        """Return the envelope of a command that ended, or did not run (`ended`: why). Output is cut to `most`."""
        finished = None if isinstance(ended, str) else ended
        output = ended if isinstance(ended, str) else ended.output + ended.errors
        self.observations += 1
        return {
            "schema": SCHEMA,
            "timestamp": _stamp(self.now()),
            "session": {
                "started_at": _stamp(self.started),
                "steps": self.turns or self.calls,  # outside of a loop, calls
                "executed_commands": self.executed,
                "observations": self.observations,
            },
            "tool": {**tool, "raw": compact(output, RAW_CHARACTERS)},
            "result": {
                "status": _status(finished),
                "exit_code": None if finished is None else finished.exit_code,
                "timed_out": finished is not None and finished.timed_out,
                "interactive": is_interactive(tool["command"]),
                "output": _with_notes(output, notes, most or OUTPUT_CHARACTERS),
            },
        }


def _with_notes(output: str, notes: Sequence[str], most: int) -> str:
    """Return the output, cut if needed, with its complete notes after it."""
    if not notes:
        return compact(output, most)
    ending = "\n".join(notes)
    room = max(most - len(ending) - 1, 0)
    shown = compact(output, room).rstrip("\n")
    return (f"{shown}\n{ending}" if shown else ending)[:most]


def compact(text: str, most: int) -> str:
    """Return `text` with at most `most` characters: its beginning, its end, and a notice between."""
    if len(text) <= most:
        return text
    notice = f"\n[... {len(text)} characters in all ...]\n"
    room = max(most - len(notice), 0)
    return f"{text[: room - room // 2]}{notice}{text[len(text) - room // 2 :]}"[:most]


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(finished: Finished | None) -> str:
    """Return the status: a command that ended by itself is completed, with any exit code (S4)."""
    if finished is None:
        return "failed"
    if finished.timed_out:
        return "timeout"
    return "completed" if finished.signal is None else "killed"


_LOOKED_AT = 10_000  # characters of a command
_WAITS = re.compile(
    r"""\s*(?:(?:\w+=\S*|sudo|env|nohup|time|exec|command|nice)\s+)*(?:\S*/)?(?:
    (?:vim?|nvim|view|emacs|nano|pico|joe|less|more|most|man|info|h?top|btop|watch|passwd|login|telnet|s?ftp|screen|tmux
      |dialog|whiptail|fzf|mc|lynx|w3m|elinks|gdb|lldb|visudo|vipw|chsh)(?!\S)(?!.*--(?:help|version))
    |(?:bash|sh|zsh|fish|dash|ksh|i?python3?|node|irb|ghci|lua|bc|sqlite3|mysql|psql|redis-cli)\s*$
    |ssh(?:\s+-\S+)*\s+[^-\s]\S*\s*$
    |(?:docker|kubectl|python3?|bash)\s(?:.*\s)?-(?:it|ti|i|-interactive|-stdin)(?!\S)
    |read\s+-p|git\s+(?:rebase\s+-i|add\s+-[pi]|commit\s+--patch))""",
    re.VERBOSE,
)


def is_interactive(command: str) -> bool:
    """Return whether a program at the beginning of `command` is likely to be interactive."""
    return any(_WAITS.match(part) for part in re.split(r"&&|\|\||[;|&\n()]", command[:_LOOKED_AT]))


def _beside_the_exit_code(finished: Finished) -> list[str]:
    """Return notes beside the exit code: the signal that killed a command, and the processes that it left."""
    if finished.timed_out:
        return []
    said = []
    if finished.signal is not None:
        doubt = "" if finished.exit_code is None else "; or it exited with that code, the sandbox does not tell"
        said.append(f"[killed by signal {finished.signal} ({signal_name(finished.signal)}){doubt}]")
    if finished.survivors:
        processes = "1 process" if finished.survivors == 1 else f"{finished.survivors} processes"
        said.append(f"[{processes} still running after the command had ended; killed]")
    return said


def _in_words(finished: Finished, timeout: float | None, notes: Sequence[str], *, separate: bool) -> str:
    """Return the output of a command, and lines for the model about how it ended, if not well."""
    output, ending = _output(finished, separate=separate), [*notes]
    if finished.timed_out:
        ending.insert(0, f"[timed out after {timeout or 0:g} seconds; the command was killed]")
    elif finished.exit_code:
        ending.insert(0, f"[exit code {finished.exit_code}]")
    return "\n".join([output.rstrip("\n"), *ending]) if ending else output


def _output(finished: Finished, *, separate: bool) -> str:
    if not separate or not finished.errors.strip():
        return finished.output if finished.output.strip() else "(no output)"
    parts = [("stdout", finished.output), ("stderr", finished.errors)]
    return "".join(f"{name}:\n{text.rstrip(chr(10))}\n" for name, text in parts if text.strip())


_NUMBERS = ("exit_code", "signal", "timed_out", "truncated", "survivors")
Environment = Callable[[dict[str, str]], dict[str, str]]
Execute = Callable[[str, tuple[str, ...], How], Awaitable[tuple[Finished, Sequence[str]]]]
"""Runs a command after its confining words; returns how it ended, and lines for the model about that."""


@frozen(eq=False)
class Runner:
    """Runs the commands of one tool and answers its calls. `sessions`: counters; `processes`: background processes."""

    tool: str
    options: ShellOptions
    sessions: PerAgent[Session] = field(factory=lambda: PerAgent(Session))
    processes: Processes | None = None

    @property
    def session(self) -> Session:
        """The counters of the agent that runs."""
        return self.sessions.own

    @property
    def in_envelopes(self) -> bool:
        """Return whether answers, also to failures, are envelopes."""
        return self.options.form == "envelope"

    async def start(self, command: str, cwd: str, context: ToolContext, env: Environment = dict) -> ToolResult:
        """Start a command in the background. `env`: a function that changes its environment."""
        if not command.strip():
            raise ToolError(EMPTY)
        assert self.processes is not None
        async with self._guarded(context, stays=True) as notes:
            seen = env(await self.options.environment(cwd, context.rights))
            shell = self.options.shell_after(self.options.before(cwd, context.rights))
            with shell_words(shell, self.options.prefix + command) as (argv, descriptors):
                over = partial(self.options.release, seen)
                started = await self.processes.start(command, argv, cwd=cwd, env=seen, pass_fds=descriptors, over=over)
        return evolve(started, text="\n".join([started.text, *notes]))

    @asynccontextmanager
    async def _guarded(self, context: ToolContext, *, stays: bool = False) -> AsyncIterator[list[str]]:
        """Keep the places that run later while a command runs; yield a list to which lines about them are added.

        stays: the command goes on in the background.
        """
        notes = list[str]()
        sandbox = self.options.sandbox
        guard = None if sandbox is None else sandbox.guard_of(context.rights)
        if sandbox is None or guard is None:
            yield notes
            return
        asks = not sandbox.strict
        if guard.begin(context.rights):
            notes += await _compared(guard, context, asks=asks)
        else:  # what has changed since is the user's
            await run_in_background(guard.accept)
        if self.processes is not None:
            self.processes.mark_alive(guard.lasting, or_soon=stays)
        try:
            yield notes
        finally:
            with anyio.CancelScope(shield=True):
                notes += await _compared(guard, context, asks=asks)
            guard.end()

    async def run(
        self, command: str, cwd: str, wanted: float | None, context: ToolContext, execute: Execute
    ) -> ToolResult:
        """Run a command by `execute` with the `wanted` timeout, and return the answer."""
        options, met, env = self.options, tuple[str, ...](), dict[str, str]()
        seconds, note = options.seconds(wanted)
        output = options.retention.collector()
        self.session.calls += self.in_envelopes
        try:
            if not command.strip():
                raise ToolError(EMPTY)
            env = await options.environment(cwd, context.rights)
            how: How = {
                "cwd": cwd,
                "env": env,
                "timeout": seconds,
                "output": output,
                "errors": options.retention.collector() if options.separate else None,
                "progress": context.progress,
            }
            async with self._guarded(context) as put_back:
                finished, lost = await execute(options.prefix + command, options.before(cwd, context.rights), how)
            errors = finished.errors if how["errors"] is None else how["errors"].readable(finished.errors)
            finished = evolve(finished, output=output.readable(finished.output), errors=errors)
        except BaseException as error:
            output.drop()
            if self.in_envelopes and isinstance(error, ToolError):
                return self._envelope(command, cwd, context, str(error), ())
            raise
        finally:
            refused = options.release(env)
        if options.sandbox is not None:
            finished, met, lines = options.sandbox.met(finished, context.rights, refused)
            lost = [*lines, *lost]
        to_stay = [NONE_STAYS if self.processes is None else TO_STAY] if finished.survivors else []
        ended, rows = await ended_since(self.processes)
        notes = [*_beside_the_exit_code(finished), *filter(None, [note]), *lost, *put_back, *to_stay, *ended]
        if self.in_envelopes:
            self.session.executed += 1
            result = self._envelope(command, cwd, context, finished, notes)
        else:
            text = _in_words(finished, seconds, notes, separate=options.separate)
            text = text if options.compact is None else compact(text, options.compact)
            result = ToolResult(text, details=output.details() if options.form == "details" else {})
        failed = finished.timed_out or finished.signal is not None
        failed = failed or (bool(finished.exit_code) and options.nonzero_is_error)
        numbers = {name: getattr(finished, name) for name in _NUMBERS}
        blocked = {"blocked": list(met)} if met else {}
        return evolve(result, is_error=failed, details={**numbers, **result.details, **blocked, **rows})

    def _envelope(
        self, command: str, cwd: str, context: ToolContext, ended: Finished | str, notes: Sequence[str]
    ) -> ToolResult:
        tool = {"tool": self.tool, "call_id": context.call_id, "command": command, "workdir": cwd}
        observation = self.session.observe(tool, ended, notes, self.options.compact)
        text = json.dumps(observation, ensure_ascii=False)
        return ToolResult(text, is_error=True, details={"interactive": observation["result"]["interactive"]})

    def heard_by(self, tool: Tool) -> Tool:
        """Return a tool whose session counts turns, also after a resume; only for envelopes."""
        if not self.in_envelopes:
            return tool
        return evolve(
            tool,
            hears=lambda event: self.session.hear(event),
            restores=lambda finished: self.session.restore(finished),
        )


async def _compared(guard: "Guard", context: ToolContext, *, asks: bool) -> list[str]:
    """Put back what changed in places that run later, after a snapshot; return lines about it."""
    refused = await run_in_background(guard.refused)
    if not refused:
        return []
    await context.keep()
    return await run_in_background(lambda: guard.put_back(refused, asks=asks))


def make_shell_tool(
    cwd: str,
    options: ShellOptions | None = None,
    *,
    name: str = "bash",
    commands: Commands | None = None,
    sessions: PerAgent[Session] | None = None,
    processes: Processes | None = None,
) -> Tool:
    """Return the tool `name`, which runs commands in `cwd`; `sessions` count for the envelope of S4.

    With `processes` a command may stay in the background; see `with_background` for the other tools it needs.
    """
    chosen = options or ShellOptions()
    if commands is not None:  # another implementation, which our sandbox cannot confine
        chosen = evolve(chosen, sandbox=None)
    runner, place = Runner(name, chosen, sessions or PerAgent(Session), processes), commands or LocalCommands()

    async def execute(text: str, before: tuple[str, ...], how: How) -> tuple[Finished, Sequence[str]]:
        return await place.run(text, shell=chosen.shell_after(before), **how), ()

    @tool(category="write", name=name)
    async def bash(
        command: Annotated[str, ShellCommand(chosen.prefix)],
        context: ToolContext,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, chosen.timeout_words] = None,
        background: Annotated[bool, Background(), BACKGROUND_WORDS] = False,
    ) -> ToolResult:
        """Run a shell command; `_description` replaces this.

        Args:
            command: the command, as bash understands it
        """
        if background and processes is not None:
            return await runner.start(command, cwd, context)
        return await runner.run(command, cwd, timeout, context, execute)

    described = evolve(bash, description=_description(chosen))
    return in_sandbox(with_background(runner.heard_by(described), processes, chosen), chosen)


def in_sandbox(shell: Tool, options: ShellOptions) -> Tool:
    """Return a tool marked as running in the sandbox of its options, if there is one.

    If rights beyond it can be granted, the tool has a parameter to request them.
    """
    sandbox = options.sandbox
    if sandbox is None:
        return shell
    known = evolve(shell, sandbox=sandbox.level, guard=sandbox.guard)
    if sandbox.strict or sandbox.level == "none" or "rights" in shell.parameters["properties"]:
        return known
    by_host = sandbox.level == "bubblewrap"
    pattern = f"network{'( [a-z0-9][a-z0-9.:_-]*)?' if by_host else ''}|unconfined|(read|write) /.+"
    right = {"type": "string", **Limits(pattern=pattern, max_length=4096).keywords("string")}
    words = RIGHTS_WORDS.format(hosts=RIGHTS_TO_HOSTS if by_host else "")
    return known.with_rights({"type": "array", "items": right, "description": words})


RIGHTS_WORDS = (
    "what the command needs beyond the sandbox, which has no network but the loopback, writes in the workspace and in "
    "/tmp alone, and hides secrets: {hosts}network (any host), write /ABSOLUTE/PATH, read /ABSOLUTE/PATH, or "
    "unconfined. The user is asked. Leave it out unless it was blocked"
)
RIGHTS_TO_HOSTS = "network HOST (one host, by HTTP or HTTPS through the proxy that the usual variables name), "
BACKGROUND_WORDS = "start the command and return; it goes on until it is stopped, whatever the timeout (a server)"
TO_STAY = "[give background=true for a process that is to stay]"
NONE_STAYS = "[the user can let processes stay: --option background=run]"


def with_background(shell: Tool, processes: Processes | None, options: ShellOptions) -> Tool:
    """Return a tool whose commands may stay among `processes`; None: it has no such parameter."""
    if processes is None:
        return shell.without("background")
    earlier, known = shell.restores, processes
    guard = None if options.sandbox is None else options.sandbox.guard

    def restore(finished: ToolFinished) -> None:
        known.restore(finished)
        if earlier is not None:
            earlier(finished)

    async def end_run() -> None:
        await known.end_run()
        if guard is not None and guard.lasting:
            await _compared(guard, ToolContext(), asks=False)
            known.mark_alive(guard.lasting)

    return evolve(shell, restores=restore, run_over=end_run)


def _description(options: ShellOptions) -> str:
    kept = {"both": "the first and the last", "head": "the first", "tail": "the last"}[options.retention.keep]
    lines = f" or {options.retention.lines} lines" if options.retention.lines else ""
    spill = ", and all of it goes to a file" if options.retention.spill else ""
    times = "as long as it takes" if options.timeout is None else f"at most {options.timeout:g} seconds"
    streams = "on their own" if options.separate else "together"
    return (
        f"Run a shell command in the workspace and return its output, standard output and error {streams}.\n\n"
        f"Each call is a new shell ({' '.join(options.shell)}); its input is empty. Processes that outlive the command "
        f"are ended. It may take {times}, unless you give a timeout in seconds. Of a long output you get {kept} "
        f"{options.retention.limit} bytes{lines}{spill}."
    )
