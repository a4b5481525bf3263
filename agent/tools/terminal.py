"""The tool `terminal(command, persistent, close)`: single commands, or a session that keeps its state (S1 6.1-6.5)."""

import os
import re
import shlex
import shutil
from collections.abc import Container, Mapping, Sequence
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
LONGEST_TEXT = 64 * 1024  # bytes of functions, and of arrays and aliases, which are read with each command
READING = 10.0  # seconds in which a shell reads functions
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
FOR_A_FORM = "their names are taken, or their values not plain; define them in the command that uses them"
FOR_A_VALUE = "they are too long, no text, or hold a command; set them in the command that needs them"

# Words of bash, and a function that it calls by itself.
OF_BASH = re.compile(
    r"alias|bg|bind|break|builtin|caller|case|cd|command|command_not_found_handle|compgen|complete|compopt|continue"
    r"|coproc|declare|dirs|disown|do|done|echo|elif|else|enable|esac|eval|exec|exit|export|false|fc|fg|fi|for"
    r"|function|getopts|hash|help|history|if|in|jobs|kill|let|local|logout|mapfile|popd|printf|pushd|pwd|read"
    r"|readarray|readonly|return|select|set|shift|shopt|source|suspend|test|then|time|times|trap|true|type|typeset"
    r"|ulimit|umask|unalias|unset|until|wait|while"
)
OF_SET = {"allexport", "errexit", "errtrace", "noclobber", "noglob", "nounset", "pipefail", "verbose", "xtrace"}
OF_SHOPT = {"dotglob", "expand_aliases", "extglob", "failglob", "globstar", "lastpipe", "nocaseglob", "nullglob"}
FUNCTION = re.compile(r"([A-Za-z_][\w.:-]*) \(\) \n(\{.*)\n", re.ASCII | re.DOTALL)
_WORD = r'(?:[\w./:@%+,-]+|"(?:[^"\\$`]|\\["\\])*")'
_ARRAY = rf"declare -[aA]x? ([A-Za-z_]\w*)(?:=\((?:\[{_WORD}\]={_WORD} ?)*\))?\n"
_ALIAS = r"alias ([A-Za-z_][\w.-]*)='[\w ./:=@%+,~-]*'\n"
PLAIN = re.compile(f"{_ARRAY}|{_ALIAS}", re.ASCII)  # what bash writes for an array or an alias that runs nothing


@frozen
class Snapshot:
    """The state of a session: its directory, and what differs from every command.

    changed, unset: variables, which are part of the environment. text: what else stands before each command, in the
    words of bash: options, functions, arrays, aliases and PATH. The gate reads it with the command.
    """

    cwd: str
    changed: Mapping[str, str] = field(factory=dict)
    unset: tuple[str, ...] = ()
    text: str = ""

    @property
    def variables(self) -> dict[str, Any]:
        """The differences from the state of every command, in the format of the log."""
        text = {"text": self.text} if self.text else {}
        return {"changed": dict(self.changed), "unset": self.unset, **text} if self != Snapshot(self.cwd) else {}

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the next shell."""
        kept = {name: value for name, value in given.items() if name not in self.unset}
        return {**kept, **self.changed, "PWD": self.cwd}


@frozen
class Left:
    """The state that a shell left, as data. A command may have forged it: only its form is certain.

    others: the text of each array, function and alias, by kind and name.
    """

    cwd: str
    variables: Mapping[str, str]
    others: Mapping[str, str]

    def is_free(self, name: str, given: Mapping[str, str]) -> bool:
        """Return whether nothing else has the name: `command NAME` would run that, and the gate would not see it."""
        places = f"{self.variables.get('PATH', '')}:{given.get('PATH', '')}".split(":")
        path = ":".join(os.path.join(self.cwd, place) for place in places)
        return OF_BASH.fullmatch(name) is None and _is_kept(name) and shutil.which(name, path=path) is None

    def functions(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the bodies of the functions that the session keeps."""
        found = [FUNCTION.fullmatch(text) for text in self.others.values()]
        bodies = {each[1]: f"() {each[2]}" for each in found if each and self.is_free(each[1], given)}
        return _those_that_fit(bodies, LONGEST_TEXT)


def read_left(content: bytes) -> Left | None:
    """Return the state in the state file of a shell.

    None if it is not valid: the shell was killed, replaced by `exec`, or the file is too large.
    """
    cwd, *fields = map(os.fsdecode, content.split(b"\0"))
    if len(content) > MOST_BYTES or fields[-2:] != ["end", ""] or not os.path.isabs(cwd) or not _is_text(cwd):
        return None
    forms = ("array ", "function ", "alias ")
    others = [each.partition("\n") for each in fields[:-2] if each.startswith(forms)]
    pairs = [each.partition("=") for each in fields[:-2] if not each.startswith(forms)]
    if not all(equals and NAME.fullmatch(name) for name, equals, _ in pairs):
        return None
    return Left(cwd, *({name: value for name, _, value in parts} for parts in (pairs, others)))


def snapshot_of(
    left: Left, functions: str, given: Mapping[str, str], passing: Container[str] = ()
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the session's new state, and notices of what is not kept.

    functions: the text of those that are. given: the variables at the start of the shell. passing: names of variables
    that belong to the call only.
    """
    found, before = (
        {name: value for name, value in variables.items() if _is_kept(name) and name not in passing}
        for variables in (left.variables, given)
    )
    at_first = {**AT_FIRST, **{name: value for name, value in before.items() if name not in UNSET_BY_THE_SHELL}}
    names = sorted(name for name in found.keys() | before.keys() if found.get(name) != at_first.get(name))
    path = {name: f"PATH={shlex.quote(found[name])}\n" for name in names if name == "PATH" and _is_plain(found, name)}
    changing = [name for name in names if changes_commands(name) and name not in path]
    plain = [name for name in names if not changes_commands(name)]
    kept = _those_that_fit({name: found[name] for name in plain if _is_plain(found, name)}, LONGEST_VALUES)
    unfit = [name for name in plain if name in found and name not in kept]
    lines = _those_that_fit({**_plain_lines(left, given), **path}, LONGEST_TEXT)
    standing = {*lines, *(f"function {name}" for name in left.functions(given))}
    forms = [name for name in left.others if name not in standing and _is_kept(name)]
    notes = ((changing, FOR_A_CHANGE), (forms, FOR_A_FORM), (unfit, FOR_A_VALUE))
    snapshot = Snapshot(
        left.cwd, kept, tuple(name for name in plain if name not in found), _with_options(left, functions, lines)
    )
    return snapshot, tuple(_note(names, why) for names, why in notes if names)


def _plain_lines(left: Left, given: Mapping[str, str]) -> dict[str, str]:
    """Return the lines that make arrays and aliases, by kind and name, without those that could run something."""
    found = {name: each for name, text in left.others.items() if (each := PLAIN.fullmatch(text))}
    expands = "expand_aliases" in left.variables.get("__bpagent_options", "")
    arrays = {name: each[0] for name, each in found.items() if each[1] and not _is_of_others(each[1])}
    aliases = {name: each[0] for name, each in found.items() if each[2] and expands and left.is_free(each[2], given)}
    return {**arrays, **aliases}


def _with_options(left: Left, functions: str, lines: Mapping[str, str]) -> str:
    """Return the text before each command. Functions may need the first options; the last ones print what follows."""
    names = set(left.variables.get("__bpagent_options", "").split(":"))
    first = [f"shopt -s {name}\n" for name in sorted(names & OF_SHOPT)]
    last = [f"set -o {name}\n" for name in sorted(names & OF_SET)]
    return "".join((*first, functions, *lines.values(), *last))


def _is_of_others(name: str) -> bool:
    """Return whether a variable belongs to the shell, or changes what programs do."""
    return not _is_kept(name) or changes_commands(name)


def _is_kept(name: str) -> bool:
    """Return whether a session keeps what has this name, before which there may be its kind."""
    return OF_EVERY_SHELL.fullmatch(name.rpartition(" ")[2]) is None


def _those_that_fit(values: Mapping[str, str], most: int) -> dict[str, str]:
    """Return those that fit into `most` bytes, short ones first, without those that are no text."""
    kept, size = dict[str, str](), 0
    for name, value in sorted(values.items(), key=lambda item: len(item[1])):
        size += len(name) + len(value.encode("utf-8", "replace"))
        if size <= most and len(value) <= LONGEST_VALUE and _is_text(value):
            kept[name] = value
    return kept


def _is_plain(variables: Mapping[str, str], name: str) -> bool:
    return name in variables and not any(mark in variables[name] for mark in COMPUTED)


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
        builtin printf '%s\0IFS=%s\0__bpagent_options=%s\0' "$PWD" "$IFS" "$__bpagent_options"
        builtin local IFS=$' \t\n' __bpagent_name
        for __bpagent_name in $(builtin compgen -v); do
            [[ $__bpagent_name = IFS || $__bpagent_name = __bpagent_* || ! -v $__bpagent_name ]] && continue
            case ${!__bpagent_name@a} in
                *[aA]*) ;;
                *) builtin printf '%s=%s\0' "$__bpagent_name" "${!__bpagent_name}" ;;
            esac
        done
        builtin unset -f __bpagent_leave
        for __bpagent_name in $(builtin compgen -A arrayvar); do
            builtin printf 'array %s\n' "$__bpagent_name"; builtin declare -p "$__bpagent_name"; builtin printf '\0'
        done
        for __bpagent_name in $(builtin compgen -A function); do
            builtin printf 'function %s\n' "$__bpagent_name"; builtin declare -f "$__bpagent_name"; builtin printf '\0'
        done
        for __bpagent_name in $(builtin compgen -a); do
            builtin printf 'alias %s\n' "$__bpagent_name"; builtin alias "$__bpagent_name"; builtin printf '\0'
        done
        builtin printf 'end\0'
    } >&OUT 2>/dev/null
    builtin trap - EXIT
    builtin exit "$__bpagent_code"
}
builtin trap '
    { __bpagent_code=$? __bpagent_options=$SHELLOPTS:$BASHOPTS; builtin set +x; } 2>/dev/null; __bpagent_leave' EXIT
IFS= builtin read -r -d '' -u COMMAND __bpagent_command; builtin eval "$__bpagent_command"; \
{ __bpagent_code=$? __bpagent_options=$SHELLOPTS:$BASHOPTS; builtin set +x; } 2>/dev/null; __bpagent_leave
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
        """Run a command in a terminal: alone, or in a session that keeps the directory and what was defined.

        There is one session at most. The first call with persistent=true opens it; while it is open, every command
        needs persistent=true. Variables, PATH, arrays, functions, aliases and shell options stay; umask, traps, limits,
        and other variables that change what commands do (HOME, IFS) hold for one command. Input is empty, and
        processes that outlive a command (jobs) are ended.

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
        before=lambda arguments: terminals.own.before(arguments),
    )
    return in_sandbox(with_background(made, processes, chosen), chosen)


@define(eq=False)
class _Terminal:
    """The terminal of an agent. `session`: the state of the open session, if any.

    `judged`: by call under way, the directory and the text for which its command was judged.
    """

    root: str
    runner: Runner
    session: Snapshot | None = None
    lock: anyio.Lock = field(factory=anyio.Lock)
    judged: dict[str, tuple[str, str]] = field(factory=dict)
    told: Mapping[str, Any] | None = None

    @property
    def where(self) -> str:
        """The directory in which the next command starts."""
        return self.root if self.session is None else self.session.cwd

    def before(self, arguments: Mapping[str, Any]) -> str:
        """Return the text that bash reads before the command of a call: none before one in the background."""
        return "" if self.session is None or arguments.get("background") else self.session.text

    def hear(self, event: Event) -> None:
        """Record the directory for which a command is judged, until its call is over."""
        self.runner.session.hear(event)
        if isinstance(event, ActionDescribed):
            self.judged[event.call.id] = event.facts.cwd, event.facts.command or ""
        elif isinstance(event, CallAnswered):
            self.judged.pop(event.call, None)

    async def start(self, command: str, context: ToolContext) -> ToolResult:
        """Start a command in the background, in the session's directory if one is open."""
        self._check_state(command, {"background": True}, context)
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
        text = self._check_state(command, {}, context)
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
        judged_with_it = {"command": command} if text else {}
        return evolve(told, details={**told.details, **judged_with_it, **self._state()})

    async def _run_in(
        self, now: Snapshot, command: str, before: tuple[str, ...], how: How, passing: Container[str]
    ) -> tuple[Finished, tuple[str, ...]]:
        """Run a command in the session; return how it ended, and notices of what the session does not keep.

        Raises CannotStart and ToolError if nothing was run.
        """
        given = {**OF_A_BARE_SHELL, **how["env"]}
        if not os.path.isdir(now.cwd):
            raise ToolError(f"the session's directory {now.cwd} is gone; close the session with close=true")
        shell = self.runner.options.shell_after(before, ("bash", "-c"))
        with unnamed_file(encoded(now.text + command, "command", CannotStart)) as script, unnamed_file() as out:
            inside: How = {**how, "cwd": now.cwd, "env": now.environment(given)}
            text = _SCRIPT.replace("-u COMMAND", f"-u {script}").replace(">&OUT", f">&{out}")
            finished = await run_process((*shell, text), pass_fds=(script, out), **inside)
            left = None if finished.timed_out else read_left(os.pread(out, MOST_BYTES + 1, 0))
        if left is None:
            return finished, (NOTHING_KEPT,)
        functions = await self._in_the_form_of_bash(left.functions(given), before, given)
        self.session, notes = snapshot_of(left, functions, given, passing)
        return evolve(finished, exited=True), notes

    async def _in_the_form_of_bash(
        self, functions: Mapping[str, str], before: tuple[str, ...], given: Mapping[str, str]
    ) -> str:
        """Return the text of functions as a bash of its own writes it: it gets them as variables, and runs none."""
        if not functions:
            return ""
        bodies = [f"BASH_FUNC_{name}%%={body}" for name, body in functions.items()]
        bash = self.runner.options.shell_after((), ("bash", "-O", "extglob", "-c"))
        with unnamed_file() as out:
            text = f"builtin export -nf {' '.join(functions)} 2>/dev/null; builtin declare -f >&{out}"
            reader = self.runner.options.shell_after(before, ("env", *bodies, *bash, text))
            await run_process(reader, cwd="/", env=given, timeout=READING, pass_fds=(out,))
            return os.pread(out, MOST_BYTES, 0).decode()

    def _check_state(self, command: str, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the text before a command.

        Raises ToolError for one that was judged for another state of the session than it would start in.
        """
        text = self.before(arguments)
        now = self.where, text + self.runner.options.prefix + command
        was = self.judged.get(context.call_id, now)
        if was[0] != now[0]:
            raise ToolError(f"judged where the session was, in {was[0]}; it is in {now[0]} now; give the command again")
        if was != now:
            raise ToolError(
                "judged before functions, aliases or options of the session changed; give the command again"
            )
        return text

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
            unset, text = tuple(told.get("unset", ())), told.get("text", "")
            self.session = Snapshot(details["cwd"], told.get("changed", {}), unset, text)
        elif "terminal" in details:
            self.session = self.told = None
