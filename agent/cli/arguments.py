"""The command line of `bpagent`: arguments, `--help`, completion for shells, and its own name in messages."""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any, NoReturn

OWN_NAME = "bpagent"


def called(*words: str) -> str:
    """Return a `bpagent` command line for the shell: by name if it is in the PATH, else by the path that was typed."""
    typed, found = sys.argv[0], shutil.which(OWN_NAME)
    is_ours = os.path.basename(typed) == OWN_NAME and os.path.exists(typed)
    by_path = is_ours and not (found is not None and os.path.samefile(found, typed))
    return shlex.join((typed if by_path else OWN_NAME, *words))


EXIT_CODES = """\
exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 limit, 4 stopped,
5 waits for approval, 6 replay differs, 130 aborted by Ctrl-C, 143 by SIGTERM.

check: 0 allow, 10 ask, 11 deny.

verify: 0 holds, 1 does not, 7 nothing is wrong, and some rule or invariant was never reached."""

FIRST_CONTACT = """\
bpagent lets a model work with tools,
under rules that you can name, test and take out.

Begin with:
    bpagent demo                                   an agent at work, offline
    bpagent chat --model http://127.0.0.1:8080/v1  talk; the model is a server
    bpagent check 'rm -rf /'                       a verdict; nothing is run

All commands:
    work       demo  run  chat  resume  runs  fork  undo
    look back  why  view  diff  replay  what-if  convert
    rules      check  verify  experiment
    parts      presets  protocols  tools  config  completion  doctor  new

bpagent COMMAND --help says more about a command, bpagent --help about all.
"""
"""The text that `bpagent` without arguments shows."""

LATEST = " (default: the latest run)"

MOST = 1_000_000_000

NAMING = ("DIR", "FILE", "ID", "NAME")

MODELS = """\
a model: gpt-5-mini (with OPENAI_API_KEY, or OPENAI_BASE_URL for another server), http://127.0.0.1:8080/v1,
http://127.0.0.1:8080/v1#name, script:FILE.yaml. Options of a server stand in brackets: 'name[accept_done=true]',
bridge, stream_options, reasoning_field. A script is steps: [{say: TEXT, call: {tool: NAME, arguments: {...}}},
...]; other keys of a step: calls (a list), reasoning, stop_reason, usage {input_tokens, output_tokens}, delay
(seconds), error {message, retryable, retry_after, reason}; a call may have an id"""
RUN_NOTES = f"""\
Standard output is the final text and nothing else (with --json: the records of the log, one JSON object per line);
progress, questions and errors go to standard error. A line that is "stop" on standard input stops the run, Ctrl-C
aborts it.

{MODELS}"""

Argument = tuple[tuple[str, ...], dict[str, Any]]
"""The names of an argument, and its options."""


def _number(kind: Callable[[str], float], least: int) -> Callable[[str], float]:
    """Return the type of an argument that is a number from `least` on."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value < MOST:
            raise argparse.ArgumentTypeError(f"expected a number from {least} on, found {text!r}")
        return value

    return read


def _argument(*names: str, **options: Any) -> Argument:
    return names, options


def _flag(name: str, purpose: str) -> Argument:
    return _argument(name, action="store_true", help=purpose)


def _several(name: str, metavar: str, purpose: str) -> Argument:
    return _argument(name, action="append", default=[], metavar=metavar, help=purpose)


def _log_argument(**options: Any) -> Argument:
    return _argument(
        "log", **{"metavar": "LOG", "nargs": "?", "help": f"a log, or the beginning of an id{LATEST}"} | options
    )


def _protocols(purpose: str) -> Argument:
    kinds = "FILE.py:NAME, module:NAME, a file of policies (.yaml), or one of `bpagent protocols`"
    return _several("--protocol", "NAME", f"{purpose}: {kinds}")


def _servers(purpose: str) -> Argument:
    written = "'npx -y some-server', 'NAME: VARIABLE=$VALUE program ...'"
    return _several("--mcp", "COMMAND", f"{purpose}: {written}; may be given more than once")


def _workspace(purpose: str) -> Argument:
    return _argument("--workspace", default=".", metavar="DIR", help=f"{purpose} (default: here)")


def _output_as_json(what: str) -> Argument:
    return _flag("--json", f"print {what}")


RECORDED_PROTOCOLS = _protocols("a b-thread that the run had in addition to its preset's")
PRESET = (
    _argument(
        "--preset", metavar="NAME", help="the preset (default: that of --config, else default); see bpagent presets"
    ),
    _argument("--config", metavar="FILE", help="a configuration file; options win over it"),
    _several("--option", "NAME=VALUE", "set an option of the preset, such as policy=strict; see bpagent presets"),
)
CONTROL = (
    _several("--role", "ROLE=MODEL", "the model of another role: trusted, editor"),
    _several("--monitor", "NAME=WHAT", "a monitor: constitution, constant:0.2, model:MODEL, or FILE.py:NAME"),
    _several("--auditor", "NAME=WHAT", "an auditor, given like --monitor"),
)
"""Other models, monitors and auditors, for protocols."""

RECORDS = (
    _output_as_json("the records of the log as they happen"),
    _flag("--partials", "with --json: the pieces of answers as they stream, too"),
)
AGENT = (
    _argument("--model", default="", metavar="NAME", help="the model, see below (default: see bpagent config)"),
    *PRESET,
    _workspace("where tools work"),
    _argument("--log", metavar="FILE", help="a new file (default: one in ~/.bpagent/runs)"),
    _servers("offer the tools of an MCP server, too"),
    _protocols("add a b-thread; may be given more than once"),
    *CONTROL,
    _several("--secret", "NAME", "keep this variable's value out of the log"),
    _argument(
        "--sandbox",
        choices=("off", "on", "required", "strict"),
        help="confine commands: where the machine can (on), or begin no run (required), and lift nothing (strict)",
    ),
    _argument("--api", default="chat", choices=("chat", "responses"), help="the model's wire format (default: chat)"),
)
"""The options of an agent: its model, rules, tools and log."""

COMMANDS: dict[str, tuple[str, *tuple[Argument, ...]]] = {
    "demo": (
        "watch an agent at work and at its limits: offline, in seconds",
        _argument("--pace", type=_number(float, 0), metavar="SECONDS", help="pause between scenes, for an audience"),
        _argument("--log", metavar="FILE", help="a new file (default: one in ~/.bpagent/runs)"),
    ),
    "run": (
        "let a model work on a task with tools",
        _argument("prompt", metavar="PROMPT", help="the task; - reads it from a pipe, @FILE in it includes a file"),
        *AGENT,
        _argument(
            "--approvals",
            choices=("now", "later", "page"),
            default="now",
            help="how a user is asked: later: the run rests and exits with 5, bpagent resume goes on; "
            "page: it waits for the page of bpagent view --follow, also without a terminal",
        ),
        _flag("--lanes", "draw what each b-thread does, as it happens"),
        *RECORDS,
    ),
    "chat": (
        "talk with an agent: one task after the other, in one conversation",
        _argument("prompt", metavar="PROMPT", nargs="?", help="the first task (default: you are asked)"),
        _argument(
            "--continue",
            dest="continue_",
            metavar="ID",
            nargs="?",
            const=True,
            help=f"go on with an earlier conversation, or run{LATEST}",
        ),
        *AGENT,
    ),
    "resume": (
        "go on with a run that was interrupted, or that waits for a decision",
        _log_argument(),
        _several("--approve", "CALL", "let this call run"),
        _several("--reject", "CALL", "do not let this call run"),
        _argument("--because", default="", metavar="TEXT", help="what the model is told with the rejection"),
        _argument("--model", default="", metavar="NAME", help="another model than before"),
        _flag("--files", "first make the files what they were where the log ends, without calls that were cut off"),
        _servers("an MCP server whose tools the run had"),
        RECORDED_PROTOCOLS,
        *CONTROL,
        *RECORDS,
    ),
    "runs": (
        "list the runs in ~/.bpagent/runs (or $BPAGENT_HOME/runs)",
        _argument("--limit", type=_number(int, 1), default=0, metavar="N", help="only the N latest (default: all)"),
        _several("--delete", "LOG", "remove this run: its log, its snapshots, and what it left in /tmp of the sandbox"),
        _flag("--prune", "remove all snapshots of workspaces, and the secrets in them, at once"),
        _output_as_json("one JSON object per run"),
    ),
    "undo": (
        "make the files of a workspace what they were before a run changed them; others' changes stay",
        _argument("words", nargs="*", metavar="LOG|FILE", help=f"a log or the beginning of an id{LATEST}; files in it"),
        _argument("--to", type=int, metavar="STEP", help="as before this step (default: before the last prompt)"),
        _flag("--force", "also what something else than the run has changed since"),
        _flag("--git", "move branches and HEAD back, too"),
        _flag("--redo", "take the latest undo back"),
    ),
    "diff": (
        "show what a run changed in its workspace, and who did",
        _log_argument(),
        _argument("step", nargs="?", type=int, metavar="STEP", help="what the calls changed that began at this step"),
        _argument("until", nargs="?", type=int, metavar="STEP", help="all that changed before this step"),
    ),
    "fork": (
        "begin a new run with the first steps of another one; each can go on",
        _log_argument(nargs=None, help="a log, or the beginning of an id"),
        _argument("step", metavar="STEP", type=int, help="the last step that both have; see bpagent view"),
        _argument("--worktree", metavar="FOLDER", help="a new folder, in which it goes on with the files of that step"),
        _flag("--files", "make the files of the workspace what they were at that step (default: you are asked)"),
        _protocols("add a b-thread, which joins after that step"),
        _argument("--model", default="", metavar="NAME", help="another model than before"),
        _argument("--output", metavar="FILE", help="the new log (default: beside the other)"),
    ),
    "convert": (
        "write logs of an earlier format as logs of this program's, beside them",
        _log_argument(nargs="+", help="logs, or folders of logs"),
    ),
    "check": (
        "judge a command without running it: allow, ask or deny, with evidence",
        _argument("shell_command", nargs="?", metavar="COMMAND", help="a shell command; - reads standard input"),
        _argument("--file", metavar="FILE", help="a file of commands, one per line; - is standard input"),
        _workspace("where it would run"),
        *PRESET,
        _argument("--policy", metavar="NAME|FILE", help="a policy instead of the preset's, or a YAML file"),
        _several("--rule", "ROW", 'a row more: "deny upload network"'),
        _output_as_json("one JSON object per command"),
    ),
    "replay": (
        "replay a log, and say whether its program makes the same records",
        _log_argument(),
        RECORDED_PROTOCOLS,
        _output_as_json("how many records are equal, and both sides of the first that is not, as one JSON object"),
    ),
    "why": (
        "explain a call: the b-threads that decided, their evidence, and what would have changed the decision",
        _log_argument(),
        _argument("call", metavar="CALL", nargs="?", help="the id of a call (default: list all)"),
        RECORDED_PROTOCOLS,
        _output_as_json("one JSON object per call"),
    ),
    "what-if": (
        "judge recorded runs again under other rules, and show which decisions change",
        _log_argument(nargs="*", help=f"logs, or folders of logs{LATEST}"),
        _argument("--policy", metavar="NAME|FILE", help="judge by this policy, or this YAML file"),
        _protocols("add a b-thread, or supply one that the run had"),
        _several("--without", "NAME", "leave this b-thread out"),
        _argument("--page", metavar="FILE", help="write an HTML page, then and now side by side"),
        _output_as_json("one JSON object per log"),
    ),
    "view": (
        "write a log as one HTML page: the conversation, and what every b-thread did",
        _log_argument(nargs="*", help=f"logs, or folders of logs{LATEST}"),
        _argument("--output", metavar="FILE", help="where the page goes (default: beside the log, as .html)"),
        _flag("--follow", "serve the page of a live run, to you alone"),
        _flag("--all", "write the pages of all runs, and an index of them"),
        _flag("--open", "open the page in your browser"),
        RECORDED_PROTOCOLS,
    ),
    "verify": (
        "search every state that the loop can reach, and check its invariants",
        *PRESET,
        _protocols("add a b-thread, to be verified with the loop"),
        _flag("--alone", "leave the rules of the preset out: the core and the protocols alone have few states"),
        _argument(
            "--max-states",
            type=_number(int, 1),
            default=1_000_000,
            metavar="N",
            help="stop at N states, since some programs have infinitely many (default: 1,000,000); then nothing is "
            "verified, and the exit code is 1",
        ),
        _argument("--page", metavar="FILE", help="write an HTML page: the protocols, and a counterexample"),
        _output_as_json("one JSON object"),
    ),
    "experiment": (
        "measure how safe and how useful protocols keep an agent",
        _argument("file", nargs="*", metavar="FILE", help="a plan in YAML; freeze FILE: set its thresholds"),
        _flag("--example", "run a small experiment, offline, in less than a minute"),
        _argument("--folder", metavar="DIR", help="where results are kept (default: FILE.results)"),
        _argument("--workers", type=_number(int, 0), metavar="N", help="worker processes; 0: only this process"),
    ),
    "tools": (
        "show the tools, their parameters, and where they come from",
        *PRESET,
        _servers("show the tools of an MCP server, too"),
        _output_as_json("one JSON object per tool"),
    ),
    "doctor": (
        "show the abilities of this machine: sandbox, programs, keys",
        _output_as_json("one JSON object"),
    ),
    "config": (
        "show which files and variables configure the command, and trust one",
        _workspace("the folder with the .bpagent/config.yaml to read"),
        _flag("--trust", "let a project's file set more than stricter rules"),
        _flag("--schema", "print the JSON schema of such files, for editors"),
        _argument("--model", default="", metavar="NAME", help="show what this option of run would give"),
        *PRESET,
    ),
    "completion": (
        "print a script that lets a shell complete commands, options and files",
        _argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"),
    ),
    "presets": (
        "show the presets, and how they differ",
        _argument("preset", nargs="?", metavar="NAME", help="show this preset alone, with all of its options"),
        _flag("--denials", "show what is refused even where a sandbox confines the call"),
        _output_as_json("one JSON object per preset"),
    ),
    "protocols": (
        "show the control protocols that ship, and what each costs",
        _argument("protocol_name", nargs="?", metavar="NAME", help="this one alone"),
        _output_as_json("one JSON object per protocol"),
    ),
    "new": (
        "write a control protocol or a setting to begin with, and its test",
        _argument("kind", choices=("protocol", "setting"), metavar="KIND", help="what to write: protocol or setting"),
        _argument("name", metavar="NAME", help="its name, such as two_files_at_most"),
        _argument("--folder", default=".", metavar="DIR", help="where (default: here)"),
    ),
}
"""The purpose and the arguments of each command."""

NOTES = {"run": RUN_NOTES, "chat": MODELS}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; its result has the name of the command in `command`."""
    parser = _Parser(
        prog="bpagent",
        description="An agent loop in which every rule is a b-thread that you can name, test and take out.",
        epilog=EXIT_CODES,
        formatter_class=_Paragraphs,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, (purpose, *arguments) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}{'' if purpose.endswith('?') else '.'}",
            epilog=NOTES.get(name),
            formatter_class=_Paragraphs,
        )
        for names, options in arguments:
            command.add_argument(*names, **options)
    return parser


class _Paragraphs(argparse.HelpFormatter):
    """Fits each paragraph of a text to the terminal, or to a hundred columns of a wider one."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(shutil.get_terminal_size().columns, 100) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(_Paragraphs, self)._fill_text(each, width, indent) for each in text.split("\n\n"))


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, and accepts no abbreviated options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Add an argument. Names may not be empty, as those from an unset variable of the shell are."""
        if options.get("metavar") in NAMING and options.get("default") != "":
            options.setdefault("type", _named)
        return super().add_argument(*names, **options)

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]
        """Refuse unknown arguments of this command; argparse would report the whole program instead."""
        words = sys.argv[1:] if arguments[0] is None else [*arguments[0]]
        if self._subparsers is not None and words[0].startswith("-") and words[0] not in self._option_string_actions:
            self.error(self._unknown([words[0].partition("=")[0]]))
        found, unknown = super().parse_known_args(*arguments)
        if unknown:
            self.error(self._unknown(unknown))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice, and suggest the nearest one; argparse would list all of them."""
        if action.choices is not None and value not in action.choices:
            from agent.vocabulary.errors import meant

            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {meant(value, action.choices)}")

    def _unknown(self, words: list[str]) -> str:
        """Return the error for words that are no arguments of this command, with a suggestion."""
        if not words[0].startswith("-"):
            return f"unrecognized arguments: {' '.join(words)} (put a text of several words in quotes)"
        from agent.vocabulary.errors import nearest

        taken = {  # options of commands, where those of the whole program are expected
            name: command
            for command, (_, *arguments) in (reversed(COMMANDS.items()) if self._subparsers is not None else ())
            for names, _ in arguments
            for name in names
            if name.startswith("-")
        }
        option, known = words[0].partition("=")[0], (*self._option_string_actions, *taken)
        close = next(iter(nearest(option, known, most=1, cutoff=0.7)), "")
        if close in taken:
            return f"{option} stands before the command; write {self.prog} {taken[close]} ... {close}"
        is_text = any(action.dest == "shell_command" for action in self._actions)  # `check ls --all`
        cure = f"; did you mean {close!r}?" if close else " (put a text of several words in quotes)" if is_text else ""
        return f"unrecognized arguments: {' '.join(words)}{cure}"

    def error(self, message: str) -> NoReturn:
        """Leave with the code for wrong usage."""
        from agent.cli.errors import Mistake

        see = f"See {self.prog} --help" if message.endswith("?") else f"see {self.prog} --help"
        raise Mistake(f"{message}{' ' if message.endswith('?') else '; '}{see}")


def _named(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty text names nothing; leave the option out, or give it a value")
    return text


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"bpagent {version('bpagent')}")
        except PackageNotFoundError:
            print("bpagent, from its source folder")
        parser.exit()


# Completion: `eval "$(bpagent completion bash)"`, the same for zsh, `bpagent completion fish | source`.

BASH = """\
_{name}() {{
    local words without='-*' word="${{COMP_WORDS[COMP_CWORD]}}"
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    [ "$COMP_CWORD" -eq 1 ] && words={commands}
    [ "${{word:0:1}}" = - ] && without=
    COMPREPLY=($(compgen -W "$words" -X "$without" -- "$word"))
}}
complete -o default -F _{name} {name}
"""
ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"


def execute(arguments: argparse.Namespace) -> int:
    """Print the script by which a shell completes commands, options and files."""
    print({"fish": _fish, "zsh": lambda: ZSH + _bash(), "bash": _bash}[arguments.shell](), end="")
    return 0


def _bash() -> str:
    cases = []
    for command, (_, *arguments) in COMMANDS.items():
        offered = (names if names[0][0] == "-" else known.get("choices", ()) for names, known in arguments)
        words = " ".join((*chain(*offered), "--help"))
        cases.append(f"        {command}) words={shlex.quote(words)} ;;")
    words = shlex.quote(" ".join((*COMMANDS, "--help", "--version")))
    return BASH.format(name=OWN_NAME, cases="\n".join(cases), commands=words)


def _fish() -> str:
    lines = []
    for command, (purpose, *arguments) in COMMANDS.items():
        lines.append(f"-n __fish_use_subcommand -a {command} -d {shlex.quote(purpose)}")
        for names, known in arguments:
            choices = f" -xa {shlex.quote(' '.join(known['choices']))}" if "choices" in known else ""
            option = f" -l {names[0][2:]}{'' if 'action' in known else ' -r'}" if names[0][0] == "-" else ""
            if option or choices:
                about = f"{option}{choices} -d {shlex.quote(known['help'])}"
                lines.append(f"-n '__fish_seen_subcommand_from {command}'{about}")
    return "".join(f"complete -c {OWN_NAME} {line}\n" for line in lines)
