"""`bpagent tools`, `presets`, `protocols` and `doctor` list the available parts; `new` writes one, and its test."""

import json
import keyword
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio

from agent.cli.errors import FAILED, OK, Mistake
from agent.cli.runs import runs_folder
from agent.cli.screen import Screen, screen_on, visible
from agent.presets import PRESETS, PURPOSES, preset_named
from agent.protocols import PROTOCOLS, Entry, entry_named
from agent.tools.definition import Tool
from agent.tools.output import size_in_words
from agent.tools.sandbox.sandbox import LEVELS, LIMITS, RESOURCES, achieved, open_at, why_not
from constitution import Rule, denials

Data = dict[str, Any]
Listing = tuple[Sequence[Data], Callable[[Screen], None]]
"""The data that --json prints, a line each, and a function that shows the same as text."""


def execute(arguments: Namespace) -> int:
    """Show a list; the exit code of `doctor` is 1 where commands cannot be confined. Raises for an unknown name."""
    if arguments.command == "new":
        return _new(arguments)
    found, show = LISTINGS[arguments.command](arguments)
    if arguments.json:
        for each in found:
            print(json.dumps(each))
    else:
        show(screen_on(sys.stdout, needed=True))
    return FAILED if arguments.command == "doctor" and found[0]["sandbox"] == "none" else OK


# Tools: their names, parameters and sources.


def _tools(arguments: Namespace) -> Listing:
    from agent.cli.build import joined, servers_of, serving, tools_of  # all that an agent needs, 0.1 s
    from agent.cli.config import chosen_preset
    from agent.models.scripted import ScriptedModel

    async def served() -> tuple[Tool, ...]:
        async with serving(servers_of(arguments)) as tools:
            return tools

    preset = chosen_preset(arguments)
    own = (*preset.own_tools(), *tools_of(preset, Path.cwd(), ScriptedModel([])))
    tools = joined(own, anyio.run(served))

    def show(screen: Screen) -> None:
        for tool in tools:
            _show_tool(tool, screen)

    names = ("name", "category", "parallel", "description", "parameters")
    return [{**{name: getattr(tool, name) for name in names}, "source": _source(tool)} for tool in tools], show


def _show_tool(tool: Tool, screen: Screen) -> None:
    name = screen.painted(f"{tool.name:15} ", "action")
    together = ", several at once" if tool.parallel else ""
    screen.line(f"{name}{tool.category}{together}, from {_source(tool)}")
    screen.line(f"{'':16}{tool.description.splitlines()[0]}")
    required: Any = tool.parameters.get("required", ())
    properties: Any = tool.parameters.get("properties", {})
    for parameter, schema in properties.items():
        screen.line(f"{'':16}- {_parameter(parameter, schema, parameter in required)}", "output")


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> str:
    kind = schema.get("type") or " or ".join(option.get("type", "any") for option in schema.get("anyOf", ()))
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    about = f": {schema['description']}" if "description" in schema else ""
    return f"{name} ({kind or 'any'}{'' if required else ', optional'}){about}"


def _source(tool: Tool) -> str:
    """Return where a tool comes from: the file that declares it, or the module in which its function was written."""
    return tool.source or str(getattr(tool.body or tool.function, "__module__", "unknown"))


# Presets: one row per option, one column per preset; the rows in which they differ come first.

LONGEST = 64  # characters of a value in the table


def _presets(arguments: Namespace) -> Listing:
    if arguments.denials:
        rows = [{"rule": rule.name, "category": rule.category, "text": f"would {what}"} for rule, what in _denials()]
        return rows, lambda screen: _table(
            screen, ("rule", "what a command"), [(row["rule"], row["text"]) for row in rows]
        )
    if arguments.preset is not None:
        name = preset_named(arguments.preset).name
        return [PRESETS[name].configuration()], lambda screen: _show_preset(screen, name)
    configurations = {preset.name: preset.configuration() for preset in PRESETS.values()}
    return [*configurations.values()], lambda screen: _show_presets(screen, configurations)


def _denials() -> Iterator[tuple[Rule, str]]:
    """Yield what `default` refuses in a sandbox, with the words for it."""
    where = {"secret": "a secret place", "worth": "a place beyond the workspace"}
    for rule in denials():
        yield rule, rule.says.format(where.get(rule.number, ""))


def _show_presets(screen: Screen, configurations: Mapping[str, Data]) -> None:
    by_option = {
        option: [_shown(found[option]) for found in configurations.values()]
        for option in configurations["default"]
        if option != "name"
    }
    different = {option: values for option, values in by_option.items() if len(set(values)) > 1}
    _table(screen, ("preset", "for"), PURPOSES.items())
    columns = {"different": [*different]}
    for number, name in enumerate(configurations):
        column = {name: [values[number] for values in different.values()]}
        if _width({**columns, **column}) > screen.width:
            _table(screen, [*columns], zip(*columns.values(), strict=True))
            columns = {"different": [*different]}
        columns |= column
    _table(screen, [*columns], zip(*columns.values(), strict=True))
    same = ((option, values[0]) for option, values in by_option.items() if option not in different)
    _table(screen, ("the same in all", ""), same)
    screen.line("One preset with its texts: bpagent presets NAME", "system")
    screen.line("Change an option: bpagent run ... --preset NAME --option OPTION=VALUE", "system")


def _width(columns: Mapping[str, Sequence[str]]) -> int:
    """Return the width of a table without broken words."""
    lines = ("\n".join((name, *cells)).split("\n") for name, cells in columns.items())
    return sum(max(map(len, each)) + 2 for each in lines)


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


def _show_preset(screen: Screen, name: str) -> None:
    """Show every option; differences to `default` are marked."""
    usual, configuration = PRESETS["default"].configuration(), PRESETS[name].configuration()
    screen.paragraph(f"For {PURPOSES[name]}.")
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


# Protocols: the shipped control protocols, their costs and sources.

HOW_TO_USE = """\

Use one: bpagent run ... --protocol NAME --monitor monitor=constitution --role trusted=MODEL
Write one: bpagent new protocol NAME"""


def _protocols(arguments: Namespace) -> Listing:
    name = arguments.protocol_name
    try:
        entries = PROTOCOLS if name is None else (entry_named(name),)
    except ValueError as error:
        raise Mistake(str(error)) from error

    def show(screen: Screen) -> None:
        for entry in entries:
            roles = f"; needs the role {' and '.join(entry.roles)}" if entry.roles else ""
            screen.line(entry.name, "title")
            screen.line(f"  {entry.does}")
            screen.line(f"  costs {entry.cost}{roles} ({entry.source})", "system")
        for line in HOW_TO_USE.splitlines() if name is None else ():
            screen.line(line, "system")

    def as_data(entry: Entry) -> Data:
        plain = {name: getattr(entry, name) for name in ("name", "does", "roles", "source")}
        return {**plain, "costs": entry.cost, "made_by": f"{entry.make.__module__}:{entry.make.__name__}"}

    return [as_data(entry) for entry in entries], show


# Doctor: the abilities of this machine, found by trying, and how to add the missing ones.

PROGRAMS = {
    "bash": "the shell of tools",
    "git": "version control",
    "bwrap": "the sandbox",
    "prlimit": "limits of memory, processes and files in the sandbox",
    "nsenter": "one loopback for all commands of an agent in the sandbox",
    "curl": "requests; experiments have a small one of their own where it is missing",
}


def _doctor(_: Namespace) -> Listing:
    found = {
        "sandbox": achieved(),
        "why_not": {level: why for level in LEVELS if level != "none" and (why := why_not(level))},
        "open": open_at(achieved()),
        "limits": list(map(LIMITS.told, RESOURCES)),
        "free": _free_space(runs_folder()),
        "programs": {name: shutil.which(name) for name in PROGRAMS},
        "settings": _programs_of_settings(),
        "runs": str(runs_folder()),
        "python": sys.version.split()[0],
        "key": bool(os.environ.get("OPENAI_API_KEY")),
    }
    return [found], lambda screen: _show_machine(screen, found)


def _free_space(folder: Path) -> int:
    """Return the bytes that are free where a folder is, or would be."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free


def _programs_of_settings() -> dict[str, dict[str, list[str]]]:
    """Return the programs that tasks of experiments use, and those of them that are missing, by setting."""
    from agent.lab.settings.catalogue import SETTINGS  # of all commands, this one and `experiment` need it
    from agent.lab.settings.post_office import PostOffice
    from agent.lab.settings.setting_checks import programs_of
    from agent.lab.settings.world import make_world

    needed = {name: programs_of(each, each.tasks(), attacks=True) for name, each in SETTINGS.items()}
    with PostOffice() as office, make_world({}, office=office) as world:
        return {name: {"uses": uses, "missing": world.missing(uses)} for name, uses in needed.items()}


def _show_machine(screen: Screen, found: Data) -> None:
    confined = found["sandbox"] != "none"
    screen.line(f"sandbox: {found['sandbox']}" if confined else "sandbox: none; commands run unconfined", "title")
    for level, why in found["why_not"].items():
        screen.line(f"  {level}: no: {why}", "system")
    if found["open"]:
        screen.paragraph(f"  commands can: {'; '.join(found['open'])}")
    if confined:
        screen.paragraph(f"  limits: {', '.join(found['limits'])}")
    screen.line("snapshots", "title")
    screen.line(f"  beside the runs, {size_in_words(found['free'])} free", "system")
    screen.line("programs", "title")
    for name, place in found["programs"].items():
        screen.line(f"  {name}: {place or 'missing'} ({PROGRAMS[name]})", "system")
    screen.line("tasks of experiments", "title")
    for name, programs in found["settings"].items():
        missing = f"; missing: {', '.join(programs['missing'])}" if programs["missing"] else ""
        screen.paragraph(f"  {name} uses {', '.join(programs['uses'])}{missing}")
    screen.line("agent", "title")
    screen.line(f"  runs in {found['runs']}, Python {found['python']}", "system")
    screen.line(f"  OPENAI_API_KEY is {'set' if found['key'] else 'not set'}", "system")


LISTINGS: dict[str, Callable[[Namespace], Listing]] = {
    "tools": _tools,
    "presets": _presets,
    "protocols": _protocols,
    "doctor": _doctor,
}


# New: a protocol or a setting to begin with; its test passes.

OURS = ("agent", "bp", "constitution", "conftest", "pytest", "attrs", "anyio")
"""Modules that a file of the same name would shadow when its test runs."""


def _new(arguments: Namespace) -> int:
    """Write both files. Raises Mistake for an invalid name, and for existing files."""
    from agent.cli.config import existing_folder

    name = arguments.name.replace("-", "_")
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise Mistake(f"{arguments.name!r} cannot be the name of a function; write it like two_files_at_most")
    if name in sys.stdlib_module_names or name in OURS:
        raise Mistake(f"{arguments.name!r} is the name of a module that there is already; choose another name")
    folder = existing_folder(arguments.folder, "--folder")
    names = {"@NAME@": name, "@CONSTANT@": name.upper(), "@TITLE@": name.replace("_", " ").capitalize()}
    written = {folder / f"{name}.py": arguments.kind, folder / f"test_{name}.py": f"{arguments.kind}_test"}
    for file in written:
        if file.exists():
            raise Mistake(f"{file} exists already; choose another name, or another --folder")
    for file, template in written.items():
        text = (files("agent.cli") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
        for mark, value in names.items():
            text = text.replace(mark, value)
        file.write_text(text, encoding="utf-8")
        print(Path(arguments.folder) / file.name)
    return OK
