"""Code on the command line: Python that only calculates and prints is harmless, all else is a question."""

import ast
import re
from functools import cache

from constitution import programs
from constitution.places import FETCHED
from constitution.tables import table
from constitution.walk import Walk
from constitution.words import known

STRANGE = (*(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Delete, ast.Lambda, ast.While, ast.Global),)
READING: tuple[list[str], ...] = ([], ["r"], ["rb"])
ABSOLUTE = re.compile(r"""["'](~?/[\w./~-]*|~)["']?""")


def inline(walk: Walk, name: str, code: str) -> None:
    """Judge code of a language."""
    if FETCHED in code:
        walk.add("fetched_code")
        return
    if known(code) and name == "python" and only_calculates(walk, code):
        return
    destroy_and_start(walk, code)
    for match in ABSOLUTE.finditer(code):
        walk.path("handle", match[1])
        if programs.sign("writes_files").search(code) and re.search(r"""["'][wa]b?\+?["']|write""", code):
            walk.path("write", match[1])
    walk.add("code")


def destroy_and_start(walk: Walk, code: str) -> None:
    """Judge what code plainly destroys, and the commands that it starts."""
    if programs.sign("destroys").search(code):
        for match in ABSOLUTE.finditer(code):
            walk.path("delete_tree", match[1])
    if programs.sign("gives_shell").search(code):
        walk.add("give_shell")
    if programs.sign("acts_as_user").search(code):
        walk.add("act_as_user")
    for match in programs.sign("starts_programs").finditer(code):
        if " " in match[2] or programs.knows(match[2]):
            walk.script(match[2])


def only_calculates(walk: Walk, code: str) -> bool:
    """Return whether Python code only calculates, prints, and reads files."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_plain(node, walk) for node in nodes)


def _is_plain(node: ast.AST, walk: Walk) -> bool:
    match node:
        case ast.Call():
            return _is_plain_call(node, walk)
        case ast.Import():
            return all(each.name in _names("pure_modules") or each.name == "os" for each in node.names)
        case ast.ImportFrom():
            is_pure = node.module in _names("pure_modules") and not node.level
            return is_pure and not any(_is_unsafe(each.name) for each in node.names)
        case ast.Attribute():
            of_os = isinstance(node.value, ast.Name) and node.value.id == "os"
            return _is_plain_attribute(node) and (not of_os or node.attr in _names("of_os"))
        case ast.Name():
            return not node.id.startswith("__")
    return not isinstance(node, STRANGE)


def _is_plain_call(node: ast.Call, walk: Walk) -> bool:
    match node.func:
        case ast.Name(id="open"):
            values = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if len(values) != len(node.args) or node.keywords or not values or values[1:] not in READING:
                return False
            walk.path("read", str(values[0]))
            return True
        case ast.Name(id=name):
            return name in _names("builtins")
        case ast.Attribute() as attribute:
            return _is_plain_attribute(attribute)
    return False


def _is_plain_attribute(node: ast.Attribute) -> bool:
    """`json.load`, and `.get` of a value, are harmless."""
    of = node.value.id if isinstance(node.value, ast.Name) else ""
    is_json = node.attr == "load" and of in ("json", "tomllib")
    return is_json or (node.attr == "get" and of not in ("requests", "os")) or not _is_unsafe(node.attr)


def _is_unsafe(name: str) -> bool:
    return programs.sign("unsafe_python").fullmatch(name) is not None


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(table("programs")["code"][kind].split())
