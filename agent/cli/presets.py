"""`bpagent presets`: one row per option, one column per preset; the rows in which they differ come first."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.cli import exit_codes
from agent.cli.screen import Screen, screen_on, visible
from agent.presets.preset import Preset
from agent.presets.shipped import PRESETS, PURPOSES, preset_named

LONGEST = 64  # characters of a value that stands in the table


def execute(arguments: Namespace) -> int:
    """Show the presets, or one of them. Raises OptionError for an unknown name."""
    presets = PRESETS.values() if arguments.preset is None else (preset_named(arguments.preset),)
    screen = screen_on(sys.stdout, needed=True)
    if arguments.json:
        for preset in presets:
            print(json.dumps(preset.configuration()))
    elif arguments.preset is None:
        _show_all(screen, {preset.name: preset.configuration() for preset in presets})
    else:
        _show_one(screen, preset_named(arguments.preset))
    return exit_codes.OK


def _show_all(screen: Screen, configurations: Mapping[str, Mapping[str, Any]]) -> None:
    by_option = {
        option: [_shown(found[option]) for found in configurations.values()]
        for option in configurations["default"]
        if option != "name"
    }
    different = {option: values for option, values in by_option.items() if len(set(values)) > 1}
    _table(screen, ("preset", "for"), PURPOSES.items())
    _table(screen, ("different", *configurations), ((option, *values) for option, values in different.items()))
    same = ((option, values[0]) for option, values in by_option.items() if option not in different)
    _table(screen, ("the same in all", ""), same)
    screen.line("One preset with its texts: bpagent presets NAME", "system")
    screen.line("Change an option: bpagent run ... --preset NAME --option OPTION=VALUE", "system")


def _table(screen: Screen, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(*heading, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold magenta")
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(*map(Text, row))
    for line in screen.rendered(table, screen.width):
        screen.line(line)
    screen.line()


def _show_one(screen: Screen, preset: Preset) -> None:
    """Show every option; what is not as in `default` is marked."""
    usual = preset_named("default").configuration()
    configuration = preset.configuration()
    screen.paragraph(f"For {PURPOSES[preset.name]}.")
    screen.line()
    first = max(map(len, configuration)) + 2
    for option, value in configuration.items():
        mark = " " if value == usual[option] else "*"
        lines = [visible(line) for line in _as_text(value).split("\n")]
        screen.line(f"{mark} {option:{first}}{lines[0]}")
        for line in lines[1:]:
            screen.line(f"  {'':{first}}{line}")
    screen.line()
    screen.line("* not as in default", "system")


def _shown(value: object) -> str:
    """Return a value for a cell: a list as lines, a long text as its length."""
    if isinstance(value, tuple) and value:
        return "\n".join(map(visible, value))
    text = visible(_as_text(value))
    return text if len(text) <= LONGEST else f"({len(text)} characters)"


def _as_text(value: object) -> str:
    match value:
        case None | ():
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
