"""The command `bpagent`: arguments in, an exit code out. Nothing heavy is imported before a command is known.

- `exit_codes`: what the numbers mean. `mistakes`: wrong input, in one sentence
- `arguments`: the command line. `calling`: what to type to call it again
- `flowing`: text in pieces. `screen`: text that cannot fake the screen, and colors
- `telling`: events in words. `display`: a run as it happens
- `progress`: what goes on just now, in one line
- `loading`, `lacking`, `equipping`: b-threads that are named, and what they need. `setup`, `serving`: presets, servers
- `archive`: the folder in which runs live
- `standing_answers`: what was answered with `always`
- `keyboard`, `person`: who sits there, and what they answer. `signals`: Ctrl-C and its like
- `session`: one run with all of these. `reviving`: what a log needs to go on, and how an outcome is told
- `making`: the agents of the command line
- the commands, one module (or package) each: `run`, `demo`, `check`, `replay`, `resume`, `chat`, `runs`, `why`,
  `what_if`, `what_if_experiment`, `view`, `verify`, `experiment`, `score`, `tools`, `presets`, `protocols`,
  `setting_template`, `new`
"""

from collections.abc import Sequence

__all__ = ["main"]

RUNNING = ("run", "chat", "resume", "demo")
"""Commands that run tools."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return its exit code."""
    from agent.cli.mistakes import guarded

    return guarded(lambda: _execute(argv))


def _execute(argv: Sequence[str] | None) -> int:
    from importlib import import_module

    from agent.cli.arguments import make_parser

    arguments = make_parser().parse_args(argv)
    module = arguments.command.replace("-", "_")
    command = import_module(f"agent.cli.{module}")
    if argv is None and module in RUNNING:  # the program is ours alone
        from agent.tools.descendants import adopt_orphans

        adopt_orphans()
    code: int = command.execute(arguments)
    return code
