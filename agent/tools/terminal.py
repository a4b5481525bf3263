"""The tool `terminal(command, persistent, close)`: single commands, or a session that keeps its state (S1 6.1-6.5)."""

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Annotated, Any

import anyio
from attrs import define, evolve, field, frozen

from agent.tools.background import Processes
from agent.tools.definition import PerAgent, Tool, ToolContext, tool
from agent.tools.process import Finished, run_process, unnamed_file
from agent.tools.sandbox.permissions import hosts_of
from agent.tools.schemas import Background, Limits, ShellCommand, encoded
from agent.tools.shell import (
    BACKGROUND_WORDS,
    EMPTY,
    How,
    LocalCommands,
    Runner,
    ShellOptions,
    in_sandbox,
    with_background,
)
from agent.vocabulary.errors import CannotStart, ToolError
from agent.vocabulary.events import ActionDescribed, CallAnswered, ToolFinished
from agent.vocabulary.messages import ToolResult
from bp import Event
from constitution import changes_commands

MOST_BYTES = 16 * 1024 * 1024  # of the state file of a shell
LONGEST_VALUE = 64 * 1024  # characters
LONGEST_VALUES = 512 * 1024  # bytes of all variables, with which programs must still start
SHOWN = 8  # names in a note

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COMPUTED = ("$(", "`", "${", "$[")  # arithmetic would run a command in a subscript
OF_EVERY_SHELL = re.compile(
    r"_|__bpagent_\w+|(?!BASH_ENV$)BASH\w*|BPAGENT_CALL|COMP_\w+|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HISTCMD"
    r"|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|OPTARG|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL"
    r"|SRANDOM|UID"
)
AT_FIRST = {"IFS": " \t\n", "PS4": "+ "}  # variables that a shell sets by itself
UNSET_BY_THE_SHELL = ("PS1", "PS2")  # by each one that is not interactive; a virtual environment exports the first

FOR_A_CHANGE = "they change what other commands do; set them in the command that needs them"
FOR_A_FORM = "a session keeps its directory and plain variables; define them in the command that uses them"
FOR_A_VALUE = "they are too long, no text, or hold a command; set them in the command that needs them"


@frozen
class Snapshot:
    """The state of a session: its directory, and the differences of its variables from those of every command."""

    cwd: str
    changed: Mapping[str, str] = field(factory=dict)
    unset: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, Any]:
        """The differences from the variables of every command, in the format of the log."""
        return {"changed": dict(self.changed), "unset": self.unset} if self.changed or self.unset else {}

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the next shell."""
        kept = {name: value for name, value in given.items() if name not in self.unset}
        return {**kept, **self.changed, "PWD": self.cwd}


def read_left(
    content: bytes, given: Mapping[str, str], passing: Container[str] = ()
) -> tuple[Snapshot, tuple[str, ...]] | None:
    """Return the session's new state from the state file of a shell, and a notice of what is not kept.

    None if there is no valid state: the shell was killed, replaced by `exec`, or the file is too large or invalid.
    given: the variables at its start. passing: names of variables that belong to the call only.
    """
    cwd, *fields = map(os.fsdecode, content.split(b"\0"))
    if len(content) > MOST_BYTES or fields[-2:] != ["end", ""] or not os.path.isabs(cwd) or not _is_text(cwd):
        return None
    forms = ("array ", "function ")
    others = [each for each in fields[:-2] if each.startswith(forms)]
    pairs = [each.partition("=") for each in fields[:-2] if not each.startswith(forms)]
    if not all(equals and NAME.fullmatch(name) for name, equals, _ in pairs):
        return None
    found = {name: value for name, _, value in pairs if _is_kept(name) and name not in passing}
    before = {name: value for name, value in given.items() if _is_kept(name) and name not in passing}
    return _compared(cwd, found, before, others)


def _compared(
    cwd: str, found: Mapping[str, str], given: Mapping[str, str], others: Iterable[str]
) -> tuple[Snapshot, tuple[str, ...]]:
    at_first = {**AT_FIRST, **{name: value for name, value in given.items() if name not in UNSET_BY_THE_SHELL}}
    names = sorted(name for name in found.keys() | given.keys() if found.get(name) != at_first.get(name))
    changing = [name for name in names if changes_commands(name)]
    plain = [name for name in names if name not in changing]
    kept = _those_that_fit({name: found[name] for name in plain if name in found})
    unfit = [name for name in plain if name in found and name not in kept]
    ours = (each for each in others if OF_EVERY_SHELL.fullmatch(each.partition(" ")[2]) is None)
    notes = ((changing, FOR_A_CHANGE), (list(ours), FOR_A_FORM), (unfit, FOR_A_VALUE))
    snapshot = Snapshot(cwd, kept, tuple(name for name in plain if name not in found))
    return snapshot, tuple(_note(names, why) for names, why in notes if names)


def _is_kept(name: str) -> bool:
    return NAME.fullmatch(name) is not None and OF_EVERY_SHELL.fullmatch(name) is None


def _those_that_fit(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that fit into the limit for starting programs; short ones first."""
    kept, size = dict[str, str](), 0
    for name, value in sorted(variables.items(), key=lambda item: len(item[1])):
        size += len(name) + len(value.encode("utf-8", "replace"))
        is_computed = any(mark in value for mark in COMPUTED)
        if size <= LONGEST_VALUES and len(value) <= LONGEST_VALUE and _is_text(value) and not is_computed:
            kept[name] = value
    return kept


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _note(names: Sequence[str], why: str) -> str:
    shown = [(name if name.isascii() and name.isprintable() else repr(name))[:60] for name in names[:SHOWN]]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return f"[not kept: {', '.join([*shown, *more])}: {why}]"


_SCRIPT = r"""
__bpagent_leave() {
    builtin set +euf
    {
        builtin printf '%s\0IFS=%s\0' "$PWD" "$IFS"
        builtin local IFS=$' \t\n' __bpagent_name
        for __bpagent_name in $(builtin compgen -v); do
            [[ $__bpagent_name = IFS || $__bpagent_name = __bpagent_* || ! -v $__bpagent_name ]] && continue
            case ${!__bpagent_name@a} in
                *[aA]*) ;;
                *) builtin printf '%s=%s\0' "$__bpagent_name" "${!__bpagent_name}" ;;
            esac
        done
        builtin unset -f __bpagent_leave
        for __bpagent_name in $(builtin compgen -A arrayvar); do builtin printf 'array %s\0' "$__bpagent_name"; done
        for __bpagent_name in $(builtin compgen -A function); do builtin printf 'function %s\0' "$__bpagent_name"; done
        builtin printf 'end\0'
    } >&OUT 2>/dev/null
    builtin trap - EXIT
    builtin exit "$__bpagent_code"
}
builtin trap '{ __bpagent_code=$?; builtin set +x; } 2>/dev/null; __bpagent_leave' EXIT
IFS= builtin read -r -d '' -u COMMAND __bpagent_command; builtin eval "$__bpagent_command"; \
{ __bpagent_code=$?; builtin set +x; } 2>/dev/null; __bpagent_leave
"""


# A shell sets missing ones to defaults of its build, which would look like changes by the command.
OF_A_BARE_SHELL = {"PATH": os.defpath, "SHELL": "/bin/sh", "TERM": "dumb"}

NOTHING_KEPT = "[the session is as it was before this command: directory and variables that it changed are lost]"


SESSION_IS_OPEN = (
    "a persistent session is open, in which single commands do not run; give persistent=true to run this in the "
    "session, or close=true to close the session first"
)


def make_terminal(cwd: str, options: ShellOptions | None = None, processes: Processes | None = None) -> Tool:
    """Return the tool `terminal`, which starts in `cwd`. Its details: exit_code, cwd, terminal (open or closed).

    With `processes` a command may stay in the background.
    """
    chosen = options or ShellOptions()
    terminals = PerAgent(lambda: _Terminal(cwd, Runner("terminal", chosen, processes=processes)))

    @tool(category="write")
    async def terminal(
        context: ToolContext,
        command: Annotated[str, ShellCommand(chosen.prefix)] | None = None,
        persistent: bool = False,
        close: bool = False,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, chosen.timeout_words] = None,
        background: Annotated[bool, Background(), BACKGROUND_WORDS] = False,
    ) -> ToolResult:
        """Run a command in a terminal: alone, or in a session that keeps the directory and plain variables.

        There is one session at most. The first call with persistent=true opens it; while it is open, every command
        needs persistent=true. Functions, arrays, aliases, shell options, umask, traps, limits, and variables that
        change what commands do (PATH, HOME) hold for one command. Input is empty, and processes that outlive a
        command are ended.

        Args:
            command: the command, as bash understands it
            persistent: run it in the session
            close: close the session, after the command if there is one
        """
        held = terminals.own
        async with held.lock:
            if background and processes is not None:
                return await held.start(command or "", context)
            return await held.use(command, persistent, close, timeout, context)

    made = evolve(
        terminal,
        hears=lambda event: terminals.own.hear(event),
        restores=lambda finished: terminals.own.restore(finished),
        cwd=lambda: terminals.own.where,
    )
    return in_sandbox(with_background(made, processes, chosen), chosen)


@define(eq=False)
class _Terminal:
    """The terminal of an agent. `session`: the state of the open session, if any.

    `judged`: by call under way, the directory for which its command was judged.
    """

    root: str
    runner: Runner
    session: Snapshot | None = None
    lock: anyio.Lock = field(factory=anyio.Lock)
    judged: dict[str, str] = field(factory=dict)
    told: Mapping[str, Any] | None = None

    @property
    def where(self) -> str:
        """The directory in which the next command starts."""
        return self.root if self.session is None else self.session.cwd

    def hear(self, event: Event) -> None:
        """Record the directory for which a command is judged, until its call is over."""
        self.runner.session.hear(event)
        if isinstance(event, ActionDescribed):
            self.judged[event.call.id] = event.facts.cwd
        elif isinstance(event, CallAnswered):
            self.judged.pop(event.call, None)

    async def start(self, command: str, context: ToolContext) -> ToolResult:
        """Start a command in the background, in the session's directory if one is open."""
        self._check_place(context)
        env = dict if self.session is None else self.session.environment
        return await self.runner.start(command, self.where, context, env)

    async def use(
        self, command: str | None, persistent: bool, close: bool, asked: float | None, context: ToolContext
    ) -> ToolResult:
        if command is not None and not command.strip():
            raise ToolError(EMPTY)
        if command is not None and self.session is not None and not (persistent or close):
            raise ToolError(SESSION_IS_OPEN)
        if command is None:
            return self._opened_or_closed(persistent, close)
        self._check_place(context)
        if persistent and self.session is None:
            self.session = Snapshot(self.root)
        closing, passing = close and self.session is not None, frozenset[str]()
        if hosts_of(context.rights):
            from agent.tools.sandbox.proxy import VARIABLES  # a rare import

            passing = VARIABLES  # they belong to the call

        async def execute(text: str, before: tuple[str, ...], how: How) -> tuple[Finished, Sequence[str]]:
            if self.session is None:
                return await LocalCommands().run(text, shell=self.runner.options.shell_after(before), **how), ()
            finished, lost = await self._run_in(self.session, text, before, how, passing)
            return finished, ["[session closed]"] if closing else lost

        told = await self.runner.run(command, self.where, asked, context, execute)
        if closing:
            self.session = None
        return evolve(told, details={**told.details, **self._state()})

    async def _run_in(
        self, now: Snapshot, command: str, before: tuple[str, ...], how: How, passing: Container[str]
    ) -> tuple[Finished, tuple[str, ...]]:
        """Run a command in the session; return how it ended, and notices of what the session does not keep.

        Raises CannotStart and ToolError if nothing was run.
        """
        given = {**OF_A_BARE_SHELL, **how["env"]}
        if not os.path.isdir(now.cwd):
            raise ToolError(f"the session's directory {now.cwd} is gone; close the session with close=true")
        with unnamed_file(encoded(command, "command", CannotStart)) as script, unnamed_file() as out:
            inside: How = {**how, "cwd": now.cwd, "env": now.environment(given)}
            text = _SCRIPT.replace("-u COMMAND", f"-u {script}").replace(">&OUT", f">&{out}")
            shell = self.runner.options.shell_after(before, ("bash", "-c"))
            finished = await run_process((*shell, text), pass_fds=(script, out), **inside)
            left = None if finished.timed_out else read_left(os.pread(out, MOST_BYTES + 1, 0), given, passing)
        if left is None:
            return finished, (NOTHING_KEPT,)
        self.session, notes = left
        return evolve(finished, exited=True), notes

    def _check_place(self, context: ToolContext) -> None:
        """Raise ToolError for a command that was judged for another directory than it would start in."""
        was = self.judged.get(context.call_id, self.where)
        if was != self.where:
            raise ToolError(
                f"judged where the session was, in {was}; it is in {self.where} now; give the command again"
            )

    def _opened_or_closed(self, persistent: bool, close: bool) -> ToolResult:
        if close:
            text = "[session closed]" if self.session is not None else "[no session is open]"
            self.session = None
        elif persistent:
            text = "[session is open already]" if self.session is not None else "[session opened]"
            self.session = self.session or Snapshot(self.root)
        else:
            raise ToolError("give a command, persistent=true to open a session, or close=true to close it")
        return ToolResult(text, details=self._state())

    def _state(self) -> dict[str, Any]:
        """Return the session's entry in the details of a call; with variables if they have changed."""
        state = {"cwd": self.where, "terminal": "closed" if self.session is None else "open"}
        kept = None if self.session is None else self.session.variables
        changed, self.told = kept != self.told, kept
        return {**state, "variables": kept} if changed and kept is not None else state

    def restore(self, finished: ToolFinished) -> None:
        """Open the session that a recorded call left open, with its directory and variables, or close it."""
        self.runner.session.restore(finished)
        details = finished.result.details
        if details.get("terminal") == "open":
            self.told = details.get("variables", self.told)
            told = self.told or {}
            self.session = Snapshot(details["cwd"], told.get("changed", {}), tuple(told.get("unset", ())))
        elif "terminal" in details:
            self.session = self.told = None
