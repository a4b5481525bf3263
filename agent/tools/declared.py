"""Tools declared in a YAML file: `tools.yaml` (S0 6.3)."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent.tools.definition import Tool, ToolContext
from agent.tools.process import Finished, run_process
from agent.tools.schemas import Limits, Schema, Shape, problems
from agent.tools.shell import How, Runner, ShellOptions, in_sandbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import Category
from agent.vocabulary.errors import ToolError
from agent.vocabulary.messages import ToolResult
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

DeclarationError = NodeError

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ENVIRONMENT_VARIABLE = re.compile(r"\$\{(\w+)\}")


@frozen
class Declaration:
    """A declared tool. Templates are texts with `{{variables}}`; `optional`: templates by parameter.

    `source`: its file and line.
    """

    name: str
    description: str
    category: Category
    program: str
    arguments: tuple[str, ...]
    optional: Mapping[str, tuple[str, ...]]
    parameters: Schema
    env: Mapping[str, str]
    source: str

    def argv(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the program and its arguments for valid `arguments`: one position for each template.

        Raises ToolError for a value that would become an option, unless the file lists the parameter's values.
        """
        values = {name: _as_text(value) for name, value in arguments.items()}
        given = (name for name in self.optional if arguments.get(name) not in (None, False))
        argv = [self.program]
        for template in (*self.arguments, *(each for name in given for each in self.optional[name])):
            filled, first = _VARIABLE.sub(lambda found: values[found[1]], template), _VARIABLE.match(template)
            if first and filled.startswith("-") and "--" not in argv and not self._is_listed(first[1]):
                raise ToolError(f"{first[1]}: {filled[:60]!r} would be taken as an option; it may not begin with -")
            argv.append(filled)
        return tuple(argv)

    def _is_listed(self, parameter: str) -> bool:
        return "enum" in self.parameters["properties"][parameter]


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def expand_environment(texts: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a tool, each `${NAME}` replaced once by ours. Raises ToolError for one not set."""
    for name in (name for text in texts.values() for name in _ENVIRONMENT_VARIABLE.findall(text)):
        if name not in ours:
            raise ToolError(f"the environment variable {name} is not set; the tool needs it")
    return {name: _ENVIRONMENT_VARIABLE.sub(lambda found: ours[found[1]], text) for name, text in texts.items()}


def make_declared_tool(declaration: Declaration, workspace: Workspace, options: ShellOptions | None = None) -> Tool:
    """Return the tool that a declaration describes; of `options` the timeout, the output and the sandbox apply."""
    chosen = evolve(options or ShellOptions(), prefix="", hook=None, form="details", compact=None)

    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        argv = declaration.argv(arguments)

        async def execute(_: str, before: tuple[str, ...], how: How) -> tuple[Finished, Sequence[str]]:
            return await run_process((*before, *argv), **how), ()

        declared = evolve(chosen, env=expand_environment(declaration.env, os.environ))
        return await Runner(declaration.name, declared).run(argv[0], workspace.root, None, context, execute)

    made = Tool(
        name=declaration.name,
        description=declaration.description,
        shape=Shape(declaration.parameters),
        function=run,
        category=declaration.category,
        workspace=workspace,
        argv=declaration.argv,
        source=declaration.source,
    )
    return in_sandbox(made, chosen)


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARAMETER = re.compile(r"\w{1,64}", re.ASCII)
_OTHERS = ("preset", "options", "security")  # other keys of a configuration file
_KEYS = ("name", "description", "category", "cmd", "args", "optional_args", "parameters", "env")
_PARAMETER_KEYS = ("type", "description", "enum", "pattern", "maxLength", "minimum", "maximum", "optional")
_TYPES = ("string", "integer", "number", "boolean")


def load_tools(
    path: str | os.PathLike[str], workspace: Workspace, options: ShellOptions | None = None
) -> tuple[Tool, ...]:
    """Return the tools of a file, for the workspace. Raises DeclarationError."""
    return tuple(make_declared_tool(declaration, workspace, options) for declaration in read_declarations(path))


def read_declarations(path: str | os.PathLike[str]) -> tuple[Declaration, ...]:
    """Return the declarations of a file. Raises DeclarationError, whose message begins with file, line and column."""
    root = read_yaml(Path(path))
    found: dict[str, Declaration] = {}
    for node in () if root.value is None else _elements(root.mapping("tools", *_OTHERS), "tools"):
        declaration = _declaration(node)
        if declaration.name in found:
            raise node.required("name").wrong(
                f"the tool {declaration.name!r} is declared already, in {found[declaration.name].source}"
            )
        found[declaration.name] = declaration
    return tuple(found.values())


def _declaration(node: Node) -> Declaration:
    parameters, title = _parameters(node.mapping(*_KEYS)), node.required("name")
    named, required = parameters["properties"], frozenset(parameters["required"])
    arguments = tuple(_template(item, named, required) for item in _elements(node, "args"))
    optional = dict(_optional(node, named, required))
    used = {name for each in (arguments, *optional.values()) for text in each for name in _VARIABLE.findall(text)}
    for name in named:
        if name not in used and name not in optional:
            raise node.required("parameters").wrong(f"the parameter {name!r} stands in no argument")
    if _NAME.fullmatch(title.text()) is None:
        raise title.wrong(f"{title.text()!r} is no name for a tool; use letters, digits, _ and -, at most 64")
    return Declaration(
        name=title.text(),
        description=_some_text(node.required("description")),
        category=node.required("category").one_of(("read", "write", "admin")),
        program=_program(node.required("cmd")),
        arguments=arguments,
        optional=optional,
        parameters=parameters,
        env=dict(_environment(node)),
        source=f"{node.path}:{node.line + 1}",
    )


def _some_text(node: Node) -> str:
    if not node.text().strip():
        raise node.wrong("the text is empty; the model reads it")
    return node.text()


def _program(node: Node) -> str:
    program = _some_text(node)
    if "{{" in program:
        raise node.wrong("cmd is the program itself; variables belong in args")
    if program.startswith("~/"):
        return os.path.expanduser(program)
    return str(node.path.absolute().parent / program) if "/" in program else program


def _parameters(node: Node) -> Schema:
    """Return the schema of the parameters; `required`: the names of those that are not optional."""
    schema: Schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for name, parameter in _entries(node, "parameters"):
        if _PARAMETER.fullmatch(name) is None:
            raise parameter.wrong(f"{name!r} is no name for a parameter; use letters, digits and _, at most 64")
        parameter.mapping(*_PARAMETER_KEYS)
        optional, description = parameter.get("optional"), parameter.get("description")
        words = {} if description is None else {"description": _some_text(description)}
        schema["properties"][name] = {**_shape(parameter), **words}
        schema["required"] += [] if optional and optional.boolean() else [name]
    return schema


def _shape(node: Node) -> Schema:
    kind = node.required("type").one_of(_TYPES)
    limited = {"type": kind, **_limits(node, kind)}
    enum = node.get("enum")
    if enum is None:
        return limited
    for item in enum.items():
        for problem in problems(limited, item.value, "the value"):
            raise item.wrong(problem)
    values = [str(item.value) if isinstance(item.value, str) else item.value for item in enum.items()]
    if not values:
        raise enum.wrong("the list is empty; name the values that are possible")
    return {"type": "string", "enum": values} if kind == "string" else {"enum": values}


def _limits(node: Node, kind: str) -> Schema:
    limits = Limits(
        minimum=node.read("minimum", _number, None),
        maximum=node.read("maximum", _number, None),
        max_length=node.read("maxLength", Node.count, None),
        pattern=node.read("pattern", Node.text, None),
    )
    try:
        return limits.keywords(kind)
    except (TypeError, ValueError) as error:
        limiting = (node.get(key) for key in ("pattern", "maxLength", "minimum", "maximum"))
        raise next(filter(None, limiting)).wrong(str(error)) from error


def _number(node: Node) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.wrong("minimum and maximum are numbers")
    return node.value


def _optional(node: Node, named: Schema, required: frozenset[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, group in _entries(node, "optional_args"):
        if name not in named:
            raise group.wrong(f"there is no parameter {name!r} that these arguments could depend on")
        yield name, tuple(_template(item, named, required | {name}) for item in group.items())


def _template(node: Node, named: Schema, given: frozenset[str]) -> str:
    """Return a template all of whose variables are `given`."""
    text = node.text()
    if "{{" in (rest := _VARIABLE.sub("", text)) or "}}" in rest:
        raise node.wrong(f"{text!r} has braces that belong to no variable; a variable is written {{{{name}}}}")
    for variable in _VARIABLE.findall(text):
        if variable not in named:
            raise node.wrong(f"there is no parameter {variable!r}; parameters: {', '.join(named) or 'none'}")
        if variable not in given:
            raise node.wrong(f"the parameter {variable!r} is optional; arguments with it belong in optional_args")
    return text


def _environment(node: Node) -> Iterator[tuple[str, str]]:
    for name, text in _entries(node, "env"):
        if not name or "=" in name or "\0" in name:
            raise text.wrong(f"{name!r} is no name for an environment variable")
        yield name, text.text()


def _entries(node: Node, key: str) -> Iterator[tuple[str, Node]]:
    found = node.get(key)
    if found is not None and found.value is not None:
        for name in found.mapping(*found.value).value:
            yield str(name), found.required(name)


def _elements(node: Node, key: str) -> Iterator[Node]:
    found = node.get(key)
    return iter(()) if found is None or found.value is None else found.items()
