"""`bpagent presets`: one row per option, one column per preset; the rows in which they differ come first."""

import json
import re
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from agent.cli import exit_codes
from agent.cli.screen import Screen, Tone, screen_on, visible
from agent.presets.preset import Preset
from agent.presets.shipped import PRESETS, PURPOSES, preset_named

LONGEST = 64  # characters of a value that stands in the table
LONGEST_NAME = 18  # characters of an option on one line
GAP = 2

Configurations = Mapping[str, Mapping[str, Any]]


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


def _show_all(screen: Screen, configurations: Configurations) -> None:
    first = next(iter(configurations.values()))
    options = [option for option in first if option != "name"]
    for name, purpose in PURPOSES.items():
        _row(screen, [name, f"for {purpose}"], [_first_column(options), screen.width - _first_column(options)])
    screen.line()
    different = [option for option in options if len({str(found[option]) for found in configurations.values()}) > 1]
    for side_by_side in _abreast(screen, options, configurations):
        _table(screen, different, side_by_side)
    screen.line("the same in all", "title")
    widths = [_first_column(options), screen.width - _first_column(options)]
    for option in (option for option in options if option not in different):
        _row(screen, [option, _shown(first[option])], widths)
    screen.line()
    screen.line("One preset with its texts: bpagent presets NAME", "system")
    screen.line("Change an option: bpagent run ... --preset NAME --option OPTION=VALUE", "system")


def _abreast(screen: Screen, options: Sequence[str], configurations: Configurations) -> Iterator[Configurations]:
    """Give all presets at once, or fewer where their names would not fit beside each other."""
    fitting = (screen.width - _first_column(options)) // (max(map(len, configurations)) + GAP)
    tables = -(-len(configurations) // max(fitting, 1))
    each = -(-len(configurations) // tables)
    for start in range(0, len(configurations), each):
        yield dict(list(configurations.items())[start : start + each])


def _table(screen: Screen, options: Sequence[str], configurations: Configurations) -> None:
    first = _first_column(options)
    widths = [first, *[(screen.width - first) // len(configurations)] * len(configurations)]
    _row(screen, ["different", *configurations], widths, "title")
    for option in options:
        _row(screen, [option, *(_shown(found[option]) for found in configurations.values())], widths)
    screen.line()


def _first_column(options: Sequence[str]) -> int:
    return min(max(len(option) for option in options), LONGEST_NAME) + GAP


def _row(screen: Screen, cells: Sequence[str], widths: Sequence[int], tone: Tone = "plain") -> None:
    """Show cells side by side, each wrapped in its width."""
    columns = [_wrapped(cell, width - GAP) for cell, width in zip(cells, widths, strict=True)]
    for line in zip_longest(*columns, fillvalue=""):
        screen.line("".join(f"{part:{width}}" for part, width in zip(line, widths, strict=True)).rstrip(), tone)


def _wrapped(text: str, width: int) -> list[str]:
    """Cut a text into lines: at its own, else after a blank or within a path or a name where that is possible."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for piece in re.findall(r"[^\s/_]*[\s/_]*", line):
            for part in textwrap.wrap(piece, width, drop_whitespace=False):
                if len(lines[-1] + part.rstrip()) > width:
                    lines.append("")
                lines[-1] += part
    return [line.rstrip() for line in lines]


def _show_one(screen: Screen, preset: Preset) -> None:
    """Show every option; what is not as in `default` is marked."""
    usual = preset_named("default").configuration()
    configuration = preset.configuration()
    screen.paragraph(f"For {PURPOSES[preset.name]}.")
    screen.line()
    first = max(map(len, configuration)) + GAP
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
