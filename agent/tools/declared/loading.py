"""Read `tools.yaml`: everything that is wrong is said when it is loaded, with file, line and column (S0 6.3)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent.tools.automata import TextPattern
from agent.tools.declared.declaration import Declaration, OptionalArguments
from agent.tools.declared.running import make_declared_tool
from agent.tools.declared.templates import Template, read_template
from agent.tools.definition import Tool
from agent.tools.marks import Limits
from agent.tools.shapes import Choice, Scalar, ScalarKind, Shape
from agent.tools.shell.options import ShellOptions
from agent.tools.structures import Field, Record
from agent.tools.workspace import Workspace
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

__all__ = ["DeclarationError", "load_tools", "read_declarations"]

DeclarationError = NodeError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARAMETER = re.compile(r"\w{1,64}", re.ASCII)
_OTHERS = ("preset", "options", "security")  # what a configuration file says besides
_KEYS = ("name", "description", "category", "cmd", "args", "optional_args", "parameters", "env")
_PARAMETER_KEYS = ("type", "description", "enum", "pattern", "maxLength", "minimum", "maximum", "optional")
_TYPES = ("string", "integer", "number", "boolean")


def load_tools(
    path: str | os.PathLike[str], workspace: Workspace, options: ShellOptions | None = None
) -> tuple[Tool, ...]:
    """Return the tools of a file; they run in the workspace. Raises DeclarationError."""
    declarations = read_declarations(path)
    return tuple(make_declared_tool(declaration, workspace, options) for declaration in declarations)


def read_declarations(path: str | os.PathLike[str]) -> tuple[Declaration, ...]:
    """Return what a file declares. Raises DeclarationError, whose message begins with file, line and column."""
    root = read_yaml(Path(path))
    if root.value is None:
        return ()
    found: dict[str, Declaration] = {}
    for node in _elements(root.mapping("tools", *_OTHERS), "tools"):
        declaration = _declaration(node)
        if declaration.name in found:
            raise node.required("name").wrong(
                f"the tool {declaration.name!r} is declared already, in {found[declaration.name].source}"
            )
        found[declaration.name] = declaration
    return tuple(found.values())


def _declaration(node: Node) -> Declaration:
    node.mapping(*_KEYS)
    fields = dict(_fields(node))
    required = frozenset(name for name, field in fields.items() if field.required)
    arguments = tuple(_template(item, fields, required) for item in _elements(node, "args"))
    groups = tuple(_groups(node, fields, required))
    used = {variable for template in arguments for variable in template.variables}
    used |= {variable for group in groups for template in group.templates for variable in template.variables}
    used |= {group.name for group in groups}
    for name in fields:
        if name not in used:
            raise node.required("parameters").wrong(f"the parameter {name!r} stands in no argument")
    return Declaration(
        name=_name(node.required("name")),
        description=_some_text(node.required("description")),
        category=node.required("category").one_of(("read", "write", "admin")),
        program=_program(node.required("cmd")),
        arguments=arguments,
        optional=groups,
        parameters=Record(tuple(fields.values())),
        listed=frozenset(name for name, field in fields.items() if isinstance(field.shape, Choice)),
        env=tuple(_environment(node)),
        source=f"{node.path}:{node.line + 1}",
    )


def _name(node: Node) -> str:
    name = node.text()
    if _NAME.fullmatch(name) is None:
        raise node.wrong(f"{name!r} is no name for a tool; use letters, digits, _ and -, at most 64")
    return name


def _some_text(node: Node) -> str:
    if not node.text().strip():
        raise node.wrong("the text is empty; the model reads it")
    return node.text()


def _program(node: Node) -> str:
    """Return the program; one that is named by a relative path lies beside the file."""
    program = _some_text(node)
    if "{{" in program:
        raise node.wrong("cmd is the program itself; variables belong in args")
    if program.startswith("~/"):
        return os.path.expanduser(program)
    return str(node.path.absolute().parent / program) if "/" in program else program


def _fields(node: Node) -> Iterator[tuple[str, Field]]:
    parameters = node.get("parameters")
    for name in parameters.mapping(*parameters.value).value if parameters is not None and parameters.value else ():
        assert parameters is not None
        parameter = parameters.required(name)
        if not isinstance(name, str) or _PARAMETER.fullmatch(name) is None:
            raise parameter.wrong(f"{name!r} is no name for a parameter; use letters, digits and _, at most 64")
        parameter.mapping(*_PARAMETER_KEYS)
        optional, description = parameter.get("optional"), parameter.get("description")
        extra = () if description is None else (("description", _some_text(description)),)
        yield str(name), Field(str(name), _shape(parameter), not (optional and optional.boolean()), extra)


def _shape(node: Node) -> Shape:
    kind: ScalarKind = node.required("type").one_of(_TYPES)
    limits = Scalar(kind, _limits(node, kind))
    enum = node.get("enum")
    if enum is None:
        return limits
    values = tuple(item.value for item in enum.items())
    for item in enum.items():
        if problems := list(limits.problems(item.value, "the value")):
            raise item.wrong(problems[0])
    if not values:
        raise enum.wrong("the list is empty; name the values that are possible")
    plain = tuple(str(value) if isinstance(value, str) else value for value in values)
    return Choice(plain, plain)


def _limits(node: Node, kind: str) -> Limits:
    for key in ("pattern", "maxLength") if kind != "string" else ("minimum", "maximum"):
        if (wrong := node.get(key)) is not None:
            raise wrong.wrong(f"{key} does not fit the type {kind}")
    if kind == "boolean" and (wrong := node.get("minimum") or node.get("maximum")) is not None:
        raise wrong.wrong("a boolean has no limits")
    pattern, length = node.get("pattern"), node.get("maxLength")
    least, most = node.get("minimum"), node.get("maximum")
    text = None if pattern is None else _pattern(pattern)
    try:
        return Limits(
            minimum=None if least is None else float(least.value),
            maximum=None if most is None else float(most.value),
            max_length=None if length is None else length.count(),
            pattern=text,
        )
    except (TypeError, ValueError) as error:
        raise node.wrong("minimum and maximum are numbers") from error


def _pattern(node: Node) -> str:
    text = node.text()
    try:
        TextPattern(text)
    except ValueError as error:
        raise node.wrong(str(error)) from error
    return text


def _groups(node: Node, fields: dict[str, Field], required: frozenset[str]) -> Iterator[OptionalArguments]:
    groups = node.get("optional_args")
    if groups is None or groups.value is None:
        return
    for name in groups.mapping(*groups.value).value:
        group = groups.required(name)
        if name not in fields:
            raise group.wrong(f"there is no parameter {name!r} that these arguments could depend on")
        templates = tuple(_template(item, fields, required | {name}) for item in group.items())
        yield OptionalArguments(str(name), templates)


def _template(node: Node, fields: dict[str, Field], given: frozenset[str]) -> Template:
    try:
        template = read_template(node.text())
    except NodeError:
        raise
    except ValueError as error:
        raise node.wrong(str(error)) from error
    for variable in template.variables:
        if variable not in fields:
            raise node.wrong(f"there is no parameter {variable!r}; parameters: {', '.join(fields) or 'none'}")
        if variable not in given:
            raise node.wrong(f"the parameter {variable!r} is optional; arguments with it belong in optional_args")
    return template


def _environment(node: Node) -> Iterator[tuple[str, str]]:
    env = node.get("env")
    if env is None or env.value is None:
        return
    for name in env.mapping(*env.value).value:
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise env.wrong(f"{name!r} is no name for an environment variable")
        yield str(name), env.required(name).text()


def _elements(node: Node, key: str) -> Iterator[Node]:
    found = node.get(key)
    return iter(()) if found is None or found.value is None else found.items()
