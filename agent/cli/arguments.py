"""The command line of `bpagent`, as `--help` shows it, and what to type to call the program again."""

import argparse
import os
import shlex
import shutil
import sys
from typing import Any, NoReturn

OWN_NAME = "bpagent"


def called(*words: str) -> str:
    """Return a command line of ours for the shell: by name where that finds us, else by the path that was typed."""
    typed = sys.argv[0]
    by_path = os.path.basename(typed) == OWN_NAME and os.path.exists(typed) and not _is_found(typed)
    return shlex.join((typed if by_path else OWN_NAME, *words))


def _is_found(typed: str) -> bool:
    found = shutil.which(OWN_NAME)
    return found is not None and os.path.samefile(found, typed)


EXIT_CODES = """\
exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 limit, 4 stopped, 5 waits for approval,
6 replay differs, 130 aborted by Ctrl-C, 143 by SIGTERM; check: 0 allow, 10 ask, 11 deny;
verify: 0 holds, 1 does not, 7 nothing is wrong, and some rule or invariant was never reached"""

FIRST_CONTACT = """\
bpagent lets a model work with tools, under rules that you can name, test and take out.

Begin with:
    bpagent demo                                     watch an agent at work and at its limits, offline
    bpagent chat --model http://127.0.0.1:8080/v1    talk with an agent; the model is a server of yours
    bpagent check 'rm -rf /'                         judge a command without running it

All commands:
    to work                 demo  run  chat  resume  runs  fork
    to look at a run        why  view  replay  what-if  score
    to check rules          check  verify  experiment
    to see and write parts  presets  protocols  tools  config  completion  doctor  new

bpagent COMMAND --help says more about a command, bpagent --help about all of them.
"""
"""The text that `bpagent` without arguments shows."""

LATEST = " (default: the latest run)"

NAMING = ("DIR", "FILE", "ID", "NAME")

MODELS = """\
a model: gpt-5-mini (with OPENAI_API_KEY, or OPENAI_BASE_URL for another server), http://127.0.0.1:8080/v1,
http://127.0.0.1:8080/v1#name, script:FILE.yaml"""
RUN_NOTES = f"""\
Standard output is the final text and nothing else (with --json: the records of the log, one JSON object per line);
progress, questions and errors go to standard error. A line that is "stop" on standard input stops the run,
Ctrl-C aborts it.

{MODELS}"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; what it parses has the module of the command in `command`."""
    parser = _Parser(
        prog="bpagent",
        description="An agent loop in which every rule is a b-thread that you can name, test and take out.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _add_demo(commands)
    _add_run(commands)
    _add_chat(commands)
    _add_resume(commands)
    _add_runs(commands)
    _add_fork(commands)
    _add_check(commands)
    _add_replay(commands)
    _add_why(commands)
    _add_what_if(commands)
    _add_view(commands)
    _add_verify(commands)
    _add_experiment(commands)
    _add_score(commands)
    _add_tools(commands)
    _add_doctor(commands)
    _add_config(commands)
    _add_completion(commands)
    _add_presets(commands)
    _add_listing(commands)
    _add_new(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = _add_command(commands, "demo", "watch an agent at work and at its limits: offline, in seconds")
    demo.add_argument("--pace", type=_seconds, metavar="SECONDS", help="pause between scenes, for an audience")
    demo.add_argument("--log", metavar="FILE", help="where the log goes (default: beside the scratch workspace)")


def _add_doctor(commands: Any) -> None:
    doctor = _add_command(commands, "doctor", "tell what this machine can do for an agent: sandbox, programs, keys")
    doctor.add_argument("--json", action="store_true", help="one JSON object")


def _add_run(commands: Any) -> None:
    run = _add_command(commands, "run", "let a model work on a task with tools", epilog=RUN_NOTES)
    run.add_argument("prompt", metavar="PROMPT", help="the task; - reads it from a pipe, @FILE in it includes a file")
    _add_agent(run)
    run.add_argument(
        "--approvals",
        choices=("now", "later"),
        default="now",
        help="later: when a person has to decide, the run rests and exits with 5; bpagent resume goes on",
    )
    run.add_argument("--lanes", action="store_true", help="draw what each b-thread does, as it happens")
    run.add_argument("--json", action="store_true", help="print the records of the log as they happen")
    run.add_argument("--partials", action="store_true", help="with --json: what streams, too")


def _add_chat(commands: Any) -> None:
    chat = _add_command(
        commands, "chat", "talk with an agent: one task after the other, in one conversation", epilog=MODELS
    )
    chat.add_argument("prompt", metavar="PROMPT", nargs="?", help="the first task (default: you are asked)")
    chat.add_argument(
        "--continue",
        dest="continue_",
        metavar="ID",
        nargs="?",
        const=True,
        help=f"go on with an earlier conversation, or run{LATEST}",
    )
    _add_agent(chat)


def _add_agent(parser: argparse.ArgumentParser) -> None:
    """Add what says which agent: its model, rules, tools and log."""
    parser.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="which model: see below (default: see bpagent config)",
    )
    _add_preset(parser)
    parser.add_argument("--workspace", default=".", metavar="DIR", help="where tools work (default: here)")
    parser.add_argument("--log", metavar="FILE", help="a new file (default: one in ~/.bpagent/runs)")
    _add_servers(parser, "offer the tools of an MCP server, too")
    _add_protocols(parser, "add a b-thread; more than once if you like")
    _add_laboratory(parser)
    parser.add_argument(
        "--secret", action="append", default=[], metavar="NAME", help="keep this variable's value out of the log"
    )
    parser.add_argument(
        "--sandbox",
        choices=("off", "on", "strict"),
        help="confine commands: where the machine can (on), or not run at all (strict); see bpagent doctor",
    )
    parser.add_argument(
        "--api", default="chat", choices=("chat", "responses"), help="the model's wire format (default: chat)"
    )


def _add_resume(commands: Any) -> None:
    resume = _add_command(commands, "resume", "go on with a run that was interrupted, or that waits for a decision")
    resume.add_argument("log", metavar="LOG", nargs="?", help=f"its log, or the beginning of its id{LATEST}")
    resume.add_argument("--approve", action="append", default=[], metavar="CALL", help="let this call run")
    resume.add_argument("--reject", action="append", default=[], metavar="CALL", help="do not let this call run")
    resume.add_argument("--because", default="", metavar="TEXT", help="what the model is told with the rejection")
    resume.add_argument("--model", default="", metavar="NAME", help="another model than before")
    _add_servers(resume, "an MCP server whose tools the run had")
    _add_protocols(resume, "a b-thread that the run had beside its preset's")
    _add_laboratory(resume)
    resume.add_argument("--json", action="store_true", help="print the further records of the log as they happen")
    resume.add_argument("--partials", action="store_true", help="with --json: what streams, too")


def _add_runs(commands: Any) -> None:
    runs = _add_command(commands, "runs", "list the runs in ~/.bpagent/runs (or $BPAGENT_HOME/runs)")
    runs.add_argument("--limit", type=_count, default=0, metavar="N", help="only the N latest (default: all)")
    runs.add_argument("--json", action="store_true", help="print one JSON object per run")


def _add_fork(commands: Any) -> None:
    fork = _add_command(commands, "fork", "begin another run with the first steps of one: both go on by themselves")
    fork.add_argument("log", metavar="LOG", help="a log, or the beginning of a run's id")
    fork.add_argument("step", metavar="STEP", type=int, help="the last step that both have; see bpagent view")
    fork.add_argument("--output", metavar="FILE", help="the new log (default: beside the other)")


def _add_config(commands: Any) -> None:
    config = _add_command(commands, "config", "show which files and variables configure the command, and trust one")
    config.add_argument("--workspace", default=".", metavar="DIR", help="whose .bpagent/config.yaml (default: here)")
    config.add_argument("--trust", action="store_true", help="let a project's file set more than stricter rules")
    config.add_argument("--schema", action="store_true", help="print the JSON schema of such files, for editors")
    config.add_argument("--model", default="", metavar="NAME", help="as if this was given to run")
    _add_preset(config)


def _add_completion(commands: Any) -> None:
    completion = _add_command(commands, "completion", "print what has a shell complete commands, options and files")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _add_check(commands: Any) -> None:
    check = _add_command(commands, "check", "judge a command without running it: allow, ask or deny, with evidence")
    check.add_argument("shell_command", nargs="?", metavar="COMMAND", help="a shell command; - reads standard input")
    check.add_argument("--file", metavar="FILE", help="a file of commands, one per line; - is standard input")
    check.add_argument("--workspace", default=".", metavar="DIR", help="where it would run (default: here)")
    check.add_argument(
        "--policy", default="default", metavar="NAME|FILE", help="a policy, or a YAML file that changes one"
    )
    check.add_argument("--rule", action="append", default=[], metavar="ROW", help='a row more: "deny upload network"')
    check.add_argument("--json", action="store_true", help="print one JSON object per command")


def _add_replay(commands: Any) -> None:
    replay = _add_command(commands, "replay", "run a log's program on its record, and say whether all is equal")
    replay.add_argument("log", metavar="LOG", nargs="?", help=f"a log, or the beginning of a run's id{LATEST}")
    _add_protocols(replay, "a b-thread that the run had beside its preset's")


def _add_why(commands: Any) -> None:
    why = _add_command(commands, "why", "say who decided about a call, on what evidence, and what had to differ")
    why.add_argument("log", metavar="LOG", nargs="?", help=f"a log, or the beginning of a run's id{LATEST}")
    why.add_argument("call", metavar="CALL", nargs="?", help="the id of a call (default: list all)")
    _add_protocols(why, "a b-thread that the run had beside its preset's")
    why.add_argument("--json", action="store_true", help="print one JSON object per call")


def _add_what_if(commands: Any) -> None:
    what_if = _add_command(
        commands, "what-if", "judge recorded runs again under other rules: what would be decided otherwise"
    )
    what_if.add_argument("log", metavar="LOG", nargs="*", help=f"logs, or folders of logs{LATEST}")
    what_if.add_argument("--policy", metavar="NAME|FILE", help="judge by this policy, or this YAML file")
    _add_protocols(what_if, "add a b-thread, or give one again that the run had")
    what_if.add_argument("--without", action="append", default=[], metavar="NAME", help="leave this b-thread out")
    what_if.add_argument("--page", metavar="FILE", help="write an HTML page, then and now side by side")
    what_if.add_argument("--json", action="store_true", help="print one JSON object per log")


def _add_view(commands: Any) -> None:
    view = _add_command(commands, "view", "write a log as one HTML page: the conversation, and what every b-thread did")
    view.add_argument("log", metavar="LOG", nargs="?", help=f"a log, or the beginning of a run's id{LATEST}")
    view.add_argument("--output", metavar="FILE", help="where the page goes (default: beside the log, as .html)")
    view.add_argument("--follow", action="store_true", help="serve the page of a run that goes on, to you alone")
    view.add_argument("--all", action="store_true", help="write the pages of all runs, and an index of them")
    view.add_argument("--open", action="store_true", help="open the page in your browser")
    _add_protocols(view, "a b-thread that the run had beside its preset's")


def _add_verify(commands: Any) -> None:
    verify = _add_command(commands, "verify", "look at every state that the loop can reach: do its invariants hold?")
    _add_preset(verify)
    _add_protocols(verify, "add a b-thread, to be verified with the loop")
    verify.add_argument("--all-subsets", action="store_true", help="leave rules of the preset out, in every way")
    verify.add_argument("--deployment", action="store_true", help="rules over episodes: each that ships, or your own")
    verify.add_argument("--max-states", type=int, metavar="N", help="give up at N states: not verified")
    verify.add_argument("--page", metavar="FILE", help="write an HTML page: the protocols, and a counterexample")
    verify.add_argument("--json", action="store_true", help="print one JSON object for each subset")


def _add_experiment(commands: Any) -> None:
    experiment = _add_command(commands, "experiment", "measure how safe and how useful protocols keep an agent")
    experiment.add_argument("file", nargs="*", metavar="FILE", help="a plan in YAML; freeze FILE: set its thresholds")
    experiment.add_argument("--example", action="store_true", help="a small one, offline, in less than a minute")
    experiment.add_argument("--folder", metavar="DIR", help="where it is kept (default: FILE.results)")
    experiment.add_argument("--workers", type=_processes, metavar="N", help="processes; 0: this one alone")


def _add_score(commands: Any) -> None:
    score = _add_command(commands, "score", "have monitors score finished logs; what is known is not asked")
    score.add_argument("log", metavar="LOG", nargs="+", help="logs, folders of logs, or beginnings of runs' ids")
    _add_monitors(score)
    score.add_argument("--auditor", metavar="NAME=WHAT", help="who audits the most suspicious: like --monitor")
    score.add_argument("--audits", type=int, default=1, metavar="N", help="how many logs are audited (default: 1)")
    score.add_argument("--by", default="", metavar="NAME", help="by which monitor's scores (default: the first)")
    score.add_argument("--json", action="store_true", help="print one JSON object per log and monitor")


def _add_tools(commands: Any) -> None:
    tools = _add_command(commands, "tools", "show the tools, their parameters, and where they come from")
    _add_preset(tools)
    _add_servers(tools, "show the tools of an MCP server, too")
    tools.add_argument("--json", action="store_true", help="print one JSON object per tool")


def _add_presets(commands: Any) -> None:
    presets = _add_command(commands, "presets", "show the presets, and how they differ")
    presets.add_argument("preset", nargs="?", metavar="NAME", help="this one alone, with all of its options")
    presets.add_argument("--json", action="store_true", help="print one JSON object per preset")


def _add_listing(commands: Any) -> None:
    protocols = _add_command(commands, "protocols", "show the control protocols that ship, and what each costs")
    protocols.add_argument("protocol_name", nargs="?", metavar="NAME", help="this one alone")
    protocols.add_argument("--json", action="store_true", help="print one JSON object per protocol")


def _add_new(commands: Any) -> None:
    new = _add_command(commands, "new", "write a control protocol or a setting to begin with, and its test")
    new.add_argument("kind", choices=("protocol", "setting"), metavar="KIND", help="what to write: protocol or setting")
    new.add_argument("name", metavar="NAME", help="its name, such as two_files_at_most")
    new.add_argument("--folder", default=".", metavar="DIR", help="where (default: here)")


def _add_preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", metavar="NAME", help="which rules (default: what --config says, else default); see bpagent presets"
    )
    parser.add_argument("--config", metavar="FILE", help="a configuration file; options win over it")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="change one row of the preset"
    )


def _add_protocols(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "--protocol",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{purpose}: FILE.py:NAME, module:NAME, a file of policies (.yaml), or one of `bpagent protocols`",
    )


def _add_servers(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="COMMAND",
        help=f"{purpose}: 'npx -y some-server', 'NAME: VARIABLE=$VALUE program ...'; more than once if you like",
    )


def _add_laboratory(parser: argparse.ArgumentParser) -> None:
    """Add what protocols need: other models, monitors and auditors."""
    parser.add_argument(
        "--role", action="append", default=[], metavar="ROLE=MODEL", help="the model of another role: trusted, editor"
    )
    _add_monitors(parser)
    parser.add_argument(
        "--auditor", action="append", default=[], metavar="NAME=WHAT", help="who audits: like --monitor"
    )


def _add_monitors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--monitor",
        action="append",
        default=[],
        metavar="NAME=WHAT",
        help="who scores: constitution, constant:0.2, model:MODEL, or FILE.py:NAME",
    )


def _add_command(commands: Any, name: str, purpose: str, epilog: str | None = None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}{'' if purpose.endswith('?') else '.'}",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong, and takes no abbreviated options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Take an argument. What names something is no empty text, as a shell makes of a variable that is not set."""
        if options.get("metavar") in NAMING and options.get("default") != "":
            options.setdefault("type", _named)
        return super().add_argument(*names, **options)

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]
        """Take no argument that this command does not know; argparse would leave it to the whole program to say so."""
        found, unknown = super().parse_known_args(*arguments)
        if unknown:
            self.error(self._unknown(unknown))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Take one of the choices. argparse lists them all; the nearest is of more use."""
        if action.choices is not None and value not in action.choices:
            from agent.vocabulary.errors import meant

            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {meant(value, action.choices)}")

    def _unknown(self, words: list[str]) -> str:
        """Return what is wrong with words that are no arguments of this command, and what may have been meant."""
        if not words[0].startswith("-"):
            return f"unrecognized arguments: {' '.join(words)} (a text of several words stands in quotes)"
        from agent.vocabulary.errors import nearest

        close = nearest(words[0].partition("=")[0], self._option_string_actions, most=1, cutoff=0.7)
        return f"unrecognized arguments: {' '.join(words)}{f'; did you mean {close[0]!r}?' if close else ''}"

    def error(self, message: str) -> NoReturn:
        """Leave with the code for wrong usage."""
        from agent.cli.mistakes import Mistake

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


def _processes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected how many processes, 0 for this one alone, found {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected how many, such as 10, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 600:
        raise argparse.ArgumentTypeError(f"expected seconds, such as 2 or 0.5, found {text!r}")
    return seconds
