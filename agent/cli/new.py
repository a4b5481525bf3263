"""`bpagent new protocol|setting NAME`: writes a protocol or a setting to begin with, and its test; both pass."""

import keyword
import sys
from argparse import Namespace
from importlib.resources import files
from pathlib import Path

from agent.cli.build import existing_folder
from agent.cli.errors import OK, Mistake

OURS = ("agent", "bp", "constitution", "conftest", "pytest", "attrs", "anyio")
"""Modules that a file of the same name would shadow when its test runs."""


def execute(arguments: Namespace) -> int:
    """Write both files. Raises Mistake for an invalid name, and for existing files."""
    name = arguments.name.replace("-", "_")
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise Mistake(f"{arguments.name!r} cannot be the name of a function; write it like two_files_at_most")
    if name in sys.stdlib_module_names or name in OURS:
        raise Mistake(f"{arguments.name!r} is the name of a module that there is already; choose another name")
    folder = existing_folder(arguments.folder, "--folder")
    names = {"@NAME@": name, "@CONSTANT@": name.upper(), "@TITLE@": name.replace("_", " ").capitalize()}
    written = {
        folder / f"{name}.py": _template(arguments.kind, names),
        folder / f"test_{name}.py": _template(f"{arguments.kind}_test", names),
    }
    for file in written:
        if file.exists():
            raise Mistake(f"{file} exists already; choose another name, or another --folder")
    for file, text in written.items():
        file.write_text(text, encoding="utf-8")
        print(Path(arguments.folder) / file.name)
    return OK


def _template(template: str, names: dict[str, str]) -> str:
    text = (files("agent.cli") / "templates" / f"{template}.txt").read_text(encoding="utf-8")
    for mark, name in names.items():
        text = text.replace(mark, name)
    return text
