"""The command `bpagent`: arguments in, an exit code out. Nothing heavy is imported before a command is known.

- `arguments`: the command line, and its completion. `errors`: exit codes, and wrong input in one sentence
- `config`: configuration files and variables, and their order. `build`: options or a log to an agent and MCP servers
- `screen`: text that cannot fake the screen, colors and markdown. `display`: events in words, and a run as it happens
- `prompt`: prompts, lines that a person types, and approvals. `editor`: the line on which they are typed
- `session`: agents with all of these. `control`: decisions from another process
- the commands: `demo`, `check`, `chat`, `view`, `verify`, `experiment` and `config`; `run` and resume; `runs`; `fork`;
  `undo` and diff; `history` has replay, why, what-if and convert; `parts` lists the parts of an agent, and has new
"""

import sys

TYPE_CHECKING = False  # see `agent`
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["let_interrupts_end_the_program", "main"]

RUNNING = ("run", "chat", "resume", "demo")
"""Commands that run tools."""

MODULES = {
    "resume": "run",
    "completion": "arguments",
    "diff": "undo",
    **dict.fromkeys(("replay", "why", "what-if", "convert"), "history"),
    **dict.fromkeys(("tools", "presets", "protocols", "doctor", "new"), "parts"),
}
"""The modules of commands that do not have their names."""


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command line `argv` (default: that of the process) and return its exit code."""
    if argv is None:
        let_interrupts_end_the_program()
    from agent.cli.errors import guarded

    return guarded(lambda: _execute(argv))


def let_interrupts_end_the_program() -> None:
    """Let Ctrl-C end the program without a traceback until a command handles it; keep it ignored, as under nohup."""
    import _signal  # type: ignore[import-not-found]  # `signal` imports for milliseconds

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _execute(argv: "Sequence[str] | None") -> int:
    from importlib import import_module

    from agent.cli.arguments import FIRST_CONTACT, make_parser

    words = [*(sys.argv[1:] if argv is None else argv)]
    if not words:
        print(FIRST_CONTACT, end="", file=sys.stderr)
        return 2
    if words[0] == "help":
        words = [*words[1:2], "--help"]

    arguments = make_parser().parse_args(words)
    name = arguments.command
    command = import_module(f"agent.cli.{MODULES.get(name, name)}")
    if argv is None and name in RUNNING:  # no other code runs in this process
        from agent.tools.descendants import adopt_orphans, hide_memory

        adopt_orphans()
        hide_memory()
    code: int = command.execute(arguments)
    return code
