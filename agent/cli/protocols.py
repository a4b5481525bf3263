"""`bpagent protocols`: the control protocols that ship, what each costs, and where it comes from."""

import json
import sys
from argparse import Namespace

from attrs import asdict

from agent.cli import exit_codes
from agent.cli.mistakes import Mistake
from agent.cli.screen import screen_on
from agent.protocols.catalogue import PROTOCOLS, Entry, entry_named


def execute(arguments: Namespace) -> int:
    """Show the protocols, or one of them. Raises Mistake for an unknown name."""
    entries = PROTOCOLS if arguments.protocol_name is None else (_named(arguments.protocol_name),)
    screen = screen_on(sys.stdout, needed=True)
    for entry in entries:
        if arguments.json:
            print(json.dumps(_as_data(entry)))
        else:
            screen.line(entry.name, "title")
            screen.line(f"  {entry.does}")
            screen.line(f"  costs {entry.cost}{_roles(entry)} ({entry.source})", "system")
    if not arguments.json and arguments.protocol_name is None:
        screen.line()
        screen.line(
            "Use one: bpagent run ... --protocol NAME --monitor monitor=constitution --role trusted=MODEL", "system"
        )
        screen.line("Write one: bpagent new protocol NAME", "system")
    return exit_codes.OK


def _named(name: str) -> Entry:
    try:
        return entry_named(name)
    except ValueError as error:
        raise Mistake(str(error)) from error


def _roles(entry: Entry) -> str:
    return f"; needs the role {' and '.join(entry.roles)}" if entry.roles else ""


def _as_data(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "does": entry.does,
        "costs": asdict(entry.cost),
        "roles": entry.roles,
        "source": entry.source,
        "made_by": f"{entry.make.__module__}:{entry.make.__name__}",
    }
