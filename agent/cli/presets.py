"""`bpagent presets`: one row per option, one column per preset; the rows in which they differ come first."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from agent.cli import exit_codes
from agent.cli.screen import Screen, screen_on, visible
from agent.presets import PRESETS

__all__ = ["execute"]

WIDEST = 34  # characters of a value


def execute(arguments: Namespace) -> int:
    """Show the presets."""
    screen = screen_on(sys.stdout)
    configurations = {name: preset.configuration() for name, preset in PRESETS.items()}
    options = [option for option in next(iter(configurations.values())) if option != "name"]
    different = [option for option in options if not _is_same(option, configurations)]
    same = [option for option in options if option not in different]
    _table(screen, "different", different, configurations)
    _table(screen, "the same", same, configurations)
    screen.line("Change one: bpagent run ... --preset NAME --option OPTION=VALUE", "system")
    return exit_codes.OK


def _is_same(option: str, configurations: Mapping[str, Mapping[str, Any]]) -> bool:
    values = [configuration[option] for configuration in configurations.values()]
    return all(value == values[0] for value in values)


def _table(screen: Screen, title: str, options: list[str], configurations: Mapping[str, Mapping[str, Any]]) -> None:
    screen.line("".join(f"{cell:{WIDEST + 2}}" for cell in (title, *configurations)).rstrip(), "title")
    for option in options:
        cells = [_shown(configuration[option]) for configuration in configurations.values()]
        screen.line("".join(f"{cell:{WIDEST + 2}}" for cell in (option, *cells)).rstrip())
    screen.line()


def _shown(value: object) -> str:
    text = visible(_as_text(value))
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _as_text(value: object) -> str:
    match value:
        case None | ():
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
