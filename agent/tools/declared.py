"""Tools that are declared in a file instead of written in Python: `tools.yaml` (S0 6.3)."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent.tools.definition import Tool, ToolContext
from agent.tools.patterns import TextPattern
from agent.tools.process import run_process
from agent.tools.schemas import Choice, Field, Limits, Record, Scalar, ScalarKind, Shape
from agent.tools.shell import ShellOptions, details_of, in_sandbox, tell
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import Category, ToolResult
from agent.vocabulary.errors import ToolError
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@frozen
class Template:
    """Texts and variables in turn: ("--name=", "name", "") is `--name={{name}}`."""

    pieces: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return self.pieces[1::2]

    @property
    def begins_with_a_variable(self) -> bool:
        """Tell whether a value could make an option of the argument."""
        return len(self.pieces) > 1 and not self.pieces[0]

    def fill_in(self, values: Mapping[str, str]) -> str:
        """Return the argument."""
        return "".join(piece if index % 2 == 0 else values[piece] for index, piece in enumerate(self.pieces))

    def check(self, values: Mapping[str, str], listed: frozenset[str]) -> None:
        """Raise ToolError for a value that would become an option of the program, unless its parameter is `listed`."""
        filled = self.fill_in(values)
        if self.begins_with_a_variable and filled.startswith("-") and self.pieces[1] not in listed:
            raise ToolError(f"{self.pieces[1]}: {filled[:60]!r} would be taken as an option; it may not begin with -")


def read_template(text: str) -> Template:
    """Return a template. Raises ValueError for braces that belong to no variable."""
    pieces = tuple(_VARIABLE.split(text))
    if any("{{" in piece or "}}" in piece for piece in pieces[::2]):
        raise ValueError(f"{text!r} has braces that belong to no variable; a variable is written {{{{name}}}}")
    return Template(pieces)


_ENVIRONMENT_VARIABLE = re.compile(r"\$\{(\w+)\}")


@frozen
class OptionalArguments:
    """Arguments that are there when the parameter `name` is given, and is not false."""

    name: str
    templates: tuple[Template, ...]


@frozen
class Declaration:
    """A declared tool. `listed` are the parameters whose values are listed by the one who declared it.

    `source` says where it stands: file and line.
    """

    name: str
    description: str
    category: Category
    program: str
    arguments: tuple[Template, ...]
    optional: tuple[OptionalArguments, ...]
    parameters: Record
    listed: frozenset[str]
    env: tuple[tuple[str, str], ...]
    source: str

    def argv(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the program and its arguments for valid `arguments`: one position for each template.

        Raises ToolError for a value that would become an option.
        """
        values = {name: _as_text(value) for name, value in arguments.items()}
        argv = [self.program]
        for template in self._templates(arguments):
            if "--" not in argv:
                template.check(values, self.listed)
            argv.append(template.fill_in(values))
        return tuple(argv)

    def _templates(self, arguments: Mapping[str, Any]) -> Iterator[Template]:
        yield from self.arguments
        for group in self.optional:
            if arguments.get(group.name) not in (None, False):
                yield from group.templates


def expand_environment(texts: tuple[tuple[str, str], ...], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a tool, each `${NAME}` replaced once by ours. Raises ToolError for one not set."""
    return {name: _ENVIRONMENT_VARIABLE.sub(lambda found: _our(found[1], ours), text) for name, text in texts}


def _our(name: str, ours: Mapping[str, str]) -> str:
    if name not in ours:
        raise ToolError(f"the environment variable {name} is not set; the tool needs it")
    return ours[name]


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def make_declared_tool(declaration: Declaration, workspace: Workspace, options: ShellOptions | None = None) -> Tool:
    """Return the tool that a declaration describes; of `options` the time, the output and the environment count."""
    how = options or ShellOptions()

    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        output = how.retention.collector()
        declared = expand_environment(declaration.env, os.environ)
        env = await evolve(how, env=declared, hook=None).environment(workspace.root, context.rights)
        finished = await run_process(
            (*how.before(workspace.root, context.rights), *declaration.argv(arguments)),
            cwd=workspace.root,
            env=env,
            timeout=how.timeout,
            output=output,
            progress=context.progress,
        )
        told = tell(finished, how.timeout, how, how.notes(finished, context.rights))
        details = {**details_of(finished), **output.details(), **how.blocked(finished, context.rights)}
        return ToolResult(told.text, told.is_error, details)

    made = Tool(
        name=declaration.name,
        description=declaration.description,
        shape=declaration.parameters,
        function=run,
        category=declaration.category,
        workspace=workspace,
        argv=declaration.argv,
        source=declaration.source,
    )
    return in_sandbox(made, how)


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
