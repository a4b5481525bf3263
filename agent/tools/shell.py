"""The tool `bash` under any name: one shell command, run to its end, answered in words or an envelope (S0, S2-S4)."""

import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypedDict, Unpack

from attrs import evolve, field, frozen, mutable, validators

from agent.tools.background import Processes, ended_since
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.output import Retained, Retention
from agent.tools.process import Finished, inherited_environment, run_process, shell_words, signal_name, tool_environment
from agent.tools.schemas import Background, Limits, ShellCommand
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import AnswerCommitted, ToolFinished
from bp import Event

if TYPE_CHECKING:
    from agent.tools.sandbox.sandbox import Sandbox

EnvironmentHook = Callable[[str], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Gets the working directory before each command, and gives variables to add: the hook `shell.env` of S2."""


def _positive() -> Any:
    return validators.optional(validators.gt(0))


@frozen
class ShellOptions:
    """Options of commands. Times are in seconds, None is no limit.

    shell: the program and the options that a command follows. timeout: for calls that name none; more than
    longest_timeout is clamped, less than shortest_timeout raised, and said so. retention: what is kept of the output.
    separate: standard error on its own. nonzero_is_error: an exit code other than 0 is an error. inherit: commands see
    all of our environment, else the allowed variables; env: variables to add. prefix: put before every command. hook:
    asked for more variables. form: text; with details of what was left out (S2); or the envelope of S4. compact:
    characters of it, at most. sandbox: what confines commands.
    """

    shell: tuple[str, ...] = ("bash", "-c")
    timeout: float | None = field(default=120.0, validator=_positive())
    longest_timeout: float | None = field(default=600.0, validator=_positive())
    shortest_timeout: float | None = field(default=None, validator=_positive())
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
        """Return what a command sees: ours or the allowed variables, then what was added, then what the hook gives."""
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

    def seconds(self, asked: float | None) -> tuple[float | None, str]:
        """Return the time for a command for which `asked` was asked, and what to say when it is another."""
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
    """Options of one command: its folder, all of its variables, its seconds, and the receivers of its output.

    `errors` gets the standard error, else `output` does; `progress` gets all of it as it comes.
    """

    cwd: str
    env: Mapping[str, str]
    timeout: float | None
    output: Retained
    errors: Retained | None
    progress: Callable[[str], None] | None


class Commands(Protocol):
    """Runs a shell command to its end, and leaves nothing of it behind."""

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` by `shell`.

        Raises CannotStart if nothing was started; ends everything when it is cancelled.
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


@frozen
class Asked:
    """A command as the model gave it to `tool`, where it starts, and for how many seconds at most."""

    tool: str
    command: str
    cwd: str
    call_id: str
    seconds: float | None = None


@mutable
class Session:
    """The commands of one agent: when the first session began, and how much there was.

    `turns` counts the answers of the model, as far as they are heard of, `calls` the commands that were asked for,
    `executed` those that ran, `observations` what was told.
    """

    now: Callable[[], datetime] = _now
    started: datetime = field(init=False)
    turns: int = 0
    calls: int = 0
    executed: int = 0
    observations: int = 0
    _latest: Event | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.started = self.now()

    @property
    def steps(self) -> int:
        """Turns of the model; outside of a loop, where there are none, calls."""
        return self.turns or self.calls

    def hear(self, event: Event) -> None:
        """Count a turn, once, however many tools share the session."""
        if isinstance(event, AnswerCommitted) and event is not self._latest:
            self._latest = event
            self.turns += 1

    def restore(self, finished: ToolFinished) -> None:
        """Count on from the envelope of a command that is recorded."""
        try:
            told = json.loads(finished.result)["session"]
            started = datetime.fromisoformat(told["started_at"])
        except (ValueError, KeyError, TypeError):
            return  # the call had no envelope
        self.started, self.turns = started, max(self.turns, told["steps"])
        self.executed, self.observations = told["executed_commands"], told["observations"]

    def observe(self, asked: Asked, ended: "Finished | str", notes: Sequence[str] = (), most: int | None = None) -> str:
        """Return the envelope of a command that has ended, or did not run: `ended` is why. Output is cut to `most`."""
        finished = None if isinstance(ended, str) else ended
        output = ended if isinstance(ended, str) else ended.output + ended.errors
        self.observations += 1
        observation = {
            "schema": SCHEMA,
            "timestamp": _stamp(self.now()),
            "session": {
                "started_at": _stamp(self.started),
                "steps": self.steps,
                "executed_commands": self.executed,
                "observations": self.observations,
            },
            "tool": {
                "tool": asked.tool,
                "call_id": asked.call_id,
                "command": asked.command,
                "workdir": asked.cwd,
                "raw": compact(output, RAW_CHARACTERS),
            },
            "result": {
                "status": _status(finished),
                "exit_code": None if finished is None else finished.exit_code,
                "timed_out": finished is not None and finished.timed_out,
                "interactive": is_interactive(asked.command),
                "output": _with_notes(output, notes, most or OUTPUT_CHARACTERS),
            },
        }
        return json.dumps(observation, ensure_ascii=False)


def _with_notes(output: str, notes: Sequence[str], most: int) -> str:
    """Return the output with its notes after it, which are never what is left out."""
    if not notes:
        return compact(output, most)
    ending = "\n".join(notes)
    room = max(most - len(ending) - 1, 0)
    shown = compact(output, room).rstrip("\n")
    return (f"{shown}\n{ending}" if shown else ending)[:most]


def compact(text: str, most: int) -> str:
    """Return `text` with at most `most` characters: its beginning and its end, and how many are missing between."""
    if len(text) <= most:
        return text
    notice = f"\n[... {len(text)} characters in all ...]\n"
    room = max(most - len(notice), 0)
    return f"{text[: room - room // 2]}{notice}{text[len(text) - room // 2 :]}"[:most]


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(finished: Finished | None) -> str:
    """A command that ended by itself is completed, whatever its exit code (S4)."""
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
    """Tell whether one of the programs at the beginning of `command` is likely to wait for a person."""
    return any(_WAITS.match(part) for part in re.split(r"&&|\|\||[;|&\n()]", command[:_LOOKED_AT]))


def is_failure(finished: Finished, options: ShellOptions) -> bool:
    """A timeout and a death by signal are errors; an exit code other than 0 is one where the options say so."""
    failed = bool(finished.exit_code) and options.nonzero_is_error
    return finished.timed_out or finished.signal is not None or failed


def details_of(finished: Finished) -> dict[str, Any]:
    """Return how a command ended, for programs."""
    names = ("exit_code", "signal", "timed_out", "truncated", "survivors")
    return {name: getattr(finished, name) for name in names}


def beside_the_exit_code(finished: Finished) -> list[str]:
    """Return what an exit code does not say: the signal that killed a command, and what it had left behind."""
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
    """Return the output of a command, and how it ended, in lines for the model; none for one that ended well."""
    output, ending = _output(finished, separate=separate), [*beside_the_exit_code(finished), *notes]
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


Environment = Callable[[dict[str, str]], dict[str, str]]
Execute = Callable[[str, tuple[str, ...], How], Awaitable[tuple[Finished, Sequence[str]]]]
"""Runs a command behind the words that confine it; returns how it ended, and lines for the model about that."""


@frozen(eq=False)
class Runner:
    """Runs the commands of one tool and answers for them: `session` counts, `processes` holds what may stay."""

    tool: str
    options: ShellOptions
    session: Session = field(factory=Session)
    processes: Processes | None = None

    @property
    def in_envelopes(self) -> bool:
        """Tell whether answers are envelopes, those of failures too."""
        return self.options.form == "envelope"

    async def start(self, command: str, cwd: str, context: ToolContext, env: Environment = dict) -> ToolResult:
        """Start a command in the background. `env` changes the variables that it is given."""
        if not command.strip():
            raise ToolError(EMPTY)
        assert self.processes is not None
        seen = env(await self.options.environment(cwd, context.rights))
        shell = (*self.options.before(cwd, context.rights), *self.options.shell)
        with shell_words(shell, self.options.prefix + command) as (argv, descriptors):
            return await self.processes.start(command, argv, cwd=cwd, env=seen, pass_fds=descriptors)

    async def run(
        self, command: str, cwd: str, wanted: float | None, context: ToolContext, execute: Execute
    ) -> ToolResult:
        """Run a command that asks for so many seconds, by `execute`, and answer for it."""
        seconds, note = self.options.seconds(wanted)
        asked, output = Asked(self.tool, command, cwd, context.call_id, seconds), self.options.retention.collector()
        self.session.calls += self.in_envelopes
        try:
            finished, lost = await self._finish(asked, output, context, execute)
        except BaseException as error:
            output.drop()
            if self.in_envelopes and isinstance(error, ToolError):
                return self._envelope(asked, str(error), (), is_error=True)
            raise
        met: tuple[str, ...] = ()
        if self.options.sandbox is not None:
            finished, met = self.options.sandbox.met(finished, context.rights)
            lost = [*self.options.sandbox.cures(met), *lost]
        to_stay = [NONE_STAYS if self.processes is None else TO_STAY] if finished.survivors else []
        ended, rows = await ended_since(self.processes)
        result = self._answer(asked, finished, output, [*filter(None, [note]), *lost, *to_stay, *ended])
        blocked = {"blocked": list(met)} if met else {}
        return evolve(result, details={**result.details, **blocked, **rows})

    async def _finish(
        self, asked: Asked, output: Retained, context: ToolContext, execute: Execute
    ) -> tuple[Finished, Sequence[str]]:
        if not asked.command.strip():
            raise ToolError(EMPTY)
        how: How = {
            "cwd": asked.cwd,
            "env": await self.options.environment(asked.cwd, context.rights),
            "timeout": asked.seconds,
            "output": output,
            "errors": self.options.retention.collector() if self.options.separate else None,
            "progress": context.progress,
        }
        return await execute(self.options.prefix + asked.command, self.options.before(asked.cwd, context.rights), how)

    def _answer(self, asked: Asked, finished: Finished, output: Retained, notes: Sequence[str]) -> ToolResult:
        is_error = is_failure(finished, self.options)
        if self.in_envelopes:
            self.session.executed += 1
            return self._envelope(asked, finished, (*beside_the_exit_code(finished), *notes), is_error=is_error)
        text = _in_words(finished, asked.seconds, notes, separate=self.options.separate)
        text = text if self.options.compact is None else compact(text, self.options.compact)
        more = output.details() if self.options.form == "details" else {}
        return ToolResult(text, is_error, {**details_of(finished), **more})

    def _envelope(self, asked: Asked, ended: Finished | str, notes: Sequence[str], *, is_error: bool) -> ToolResult:
        text = self.session.observe(asked, ended, notes, self.options.compact)
        details = {} if isinstance(ended, str) else details_of(ended)
        return ToolResult(text, is_error=is_error, details={**details, "interactive": is_interactive(asked.command)})

    def heard_by(self, tool: Tool) -> Tool:
        """Return a tool whose session counts turns, and counts on after a resume; that is for envelopes alone."""
        if not self.in_envelopes:
            return tool
        return evolve(tool, hears=self.session.hear, restores=self.session.restore)


def make_shell_tool(
    cwd: str,
    options: ShellOptions | None = None,
    *,
    name: str = "bash",
    commands: Commands | None = None,
    session: Session | None = None,
    processes: Processes | None = None,
) -> Tool:
    """Return the tool `name`, which runs commands in `cwd`; `session` counts for the envelope of S4.

    With `processes` a command may stay in the background; see `with_background` for the other tools that this takes.
    """
    chosen = options or ShellOptions()
    if commands is not None:  # elsewhere, where our sandbox cannot reach
        chosen = evolve(chosen, sandbox=None)
    runner, place = Runner(name, chosen, session or Session(), processes), commands or LocalCommands()

    async def execute(text: str, before: tuple[str, ...], how: How) -> tuple[Finished, Sequence[str]]:
        return await place.run(text, shell=(*before, *chosen.shell), **how), ()

    @tool(category="write", name=name)
    async def bash(
        command: Annotated[str, ShellCommand(chosen.prefix)],
        context: ToolContext,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, chosen.timeout_words] = None,
        background: Annotated[bool, Background(), BACKGROUND_WORDS] = False,
    ) -> ToolResult:
        """Run a shell command in the workspace and return its output, standard output and error together.

        Each call is a new shell; its input is empty. Processes that outlive the command are ended.

        Args:
            command: the command, as bash understands it
        """
        if background and processes is not None:
            return await runner.start(command, cwd, context)
        return await runner.run(command, cwd, timeout, context, execute)

    described = evolve(bash, description=_description(chosen)) if options else bash
    return in_sandbox(with_background(runner.heard_by(described), processes), chosen)


def in_sandbox(shell: Tool, options: ShellOptions) -> Tool:
    """Return a tool that says it runs in the sandbox of its options, if there is one.

    Where a right beyond it can be granted, the tool has a parameter more, by which the model asks for rights.
    """
    sandbox = options.sandbox
    if sandbox is None:
        return shell
    known = evolve(shell, sandbox=sandbox.level, confine=sandbox.prefix)
    if sandbox.strict or sandbox.level == "none" or "rights" in shell.parameters["properties"]:
        return known
    by_host = sandbox.level == "bubblewrap"
    pattern = f"network{'( [a-z0-9][a-z0-9.:_-]*)?' if by_host else ''}|unconfined|write /.+"
    right = {"type": "string", **Limits(pattern=pattern, max_length=4096).keywords("string")}
    words = RIGHTS_WORDS.format(hosts=RIGHTS_TO_HOSTS if by_host else "")
    return known.with_rights({"type": "array", "items": right, "description": words})


RIGHTS_WORDS = (
    "what the command needs beyond the sandbox, which has no network but the loopback and writes in the workspace and "
    "/tmp alone: {hosts}network (any host), write /ABSOLUTE/PATH, or unconfined. The user is asked. Leave it out "
    "unless it was blocked"
)
RIGHTS_TO_HOSTS = "network HOST (one host, by HTTP or HTTPS through the proxy that the usual variables name), "
BACKGROUND_WORDS = "start the command and return; it goes on until it is stopped, whatever the timeout (a server)"
TO_STAY = "[give background=true for a process that is to stay]"
NONE_STAYS = "[the user can let processes stay: --option background=run]"


def with_background(shell: Tool, processes: Processes | None) -> Tool:
    """Return a tool whose commands may stay among `processes`; without these it has no such parameter."""
    if processes is None:
        return shell.without("background")
    earlier, known = shell.restores, processes

    def restore(finished: ToolFinished) -> None:
        known.restore(finished)
        if earlier is not None:
            earlier(finished)

    return evolve(shell, restores=restore, run_over=known.end_run)


def _description(options: ShellOptions) -> str:
    """Say what holds with these options, for the model."""
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
