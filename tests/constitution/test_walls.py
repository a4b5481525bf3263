"""The constitution is pure: it imports no system interface and neither of the other rooms."""

import ast
from pathlib import Path

import pytest

import constitution

ALLOWED = {
    "ast",
    "attrs",
    "collections",
    "constitution",
    "copy",
    "difflib",
    "enum",
    "fnmatch",
    "functools",
    "hashlib",
    "importlib",
    "itertools",
    "posixpath",
    "re",
    "shlex",
    "tomllib",
    "tree_sitter",
    "typing",
    "unicodedata",
    "warnings",
}


@pytest.mark.slow
def test_the_constitution_imports_only_what_is_pure() -> None:
    for file in Path(constitution.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= ALLOWED, file.name


def test_the_reading_order_names_every_module() -> None:
    folder = Path(constitution.__file__).parent
    modules = {file.stem for file in folder.rglob("*.py")} - {"__init__"}

    assert modules <= set((constitution.__doc__ or "").replace("`", " ").split())
