"""The collections of tools of S2, the executor of S3, and tools from `tools.yaml` (S0 6.3, S6.7 to S6.9, S6.13)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, Run, ScriptedModel, call
from agent.effects.execution import describe
from agent.models.scripted import Step
from agent.tools.background import Processes
from agent.tools.collections import (
    BUILT_IN_TOOLS,
    CODING_TOOLS,
    READ_ONLY_TOOLS,
    CodingOptions,
    built_in_tool_schemas,
    create_all_tools,
    create_coding_tools,
    create_read_only_tools,
    create_tool_executor,
    make_collection,
)
from agent.tools.declared import DeclarationError, load_tools, read_declarations
from agent.tools.definition import Tool, Toolbox, tool
from agent.tools.shell import ShellOptions
from agent.tools.work import TodoItem, TodoStore, make_todo_tools
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import ToolMessage
from tests.tables import rows

from .conftest import plant

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]


async def test_s2_files_elsewhere_have_places_of_their_own(tmp_path: Path) -> None:
    """Paths are not made those of the agent's workspace, which is here."""
    for folder in (here := tmp_path / "here", elsewhere := tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
    tools = create_all_tools(here, CodingOptions(files=Workspace(elsewhere)))

    run = await Agent(ScriptedModel([call("read", path="a.txt"), "Done."]), tools.values(), workspace=here).run("Read")

    assert "elsewhere" in run.messages[2].text


def test_s2_collections_are_those_of_the_specification(root: Path) -> None:
    everything = create_all_tools(root)

    assert all(name == tool.name for name, tool in everything.items())
    coding, reading = create_coding_tools(root), create_read_only_tools(root)
    assert [tool.name for tool in coding] == [name for name in CODING_TOOLS if name in everything]
    assert [tool.name for tool in reading] == [name for name in READ_ONLY_TOOLS if name in everything]
    assert {tool.category for tool in reading} == {"read"}


async def test_s2_tools_start_in_the_directory_and_reach_absolute_paths(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"ws/here": "here", "there": "there"})
    tools = create_all_tools(root)

    assert (await tools["read"].run({"path": "here"})).text == "here"
    assert (await tools["read"].run({"path": str(tmp_path / "there")})).text == "there"
    failed = await tools["bash"].run({"command": "pwd; exit 1"})
    assert (failed.text, failed.is_error) == (f"{root}\n[exit code 1]", True)


DANGEROUS = "rm -rf /nonexistent-folder"


@rows(
    ("name", "arguments", "said", "is_error"),
    [
        ("read_file", {"path": "a.txt"}, "hello", False),
        ("list_files", {"pattern": "*.txt"}, "a.txt", False),
        ("bash", {"command": "cat a.txt; exit 2"}, "hello\n[exit code 2]", False),
        ("write_file", {"path": "b", "content": "x"}, "mine: b", False),
        ("read_fil", {}, "unknown tool 'read_fil'; nearest: read_file", True),
        ("read_file", {}, "invalid arguments: path: missing", True),
        ("read_file", {"path": "../x"}, "permission denied", True),
        ("list_files", {"pattern": "../*"}, "the pattern '../*' leaves its directory", True),
        ("bash", {"command": DANGEROUS}, f"rejected: dangerous command: {DANGEROUS}", True),
    ],
)
async def test_s3_the_executor_runs_built_in_and_custom_tools_and_times_them(
    root: Path, name: str, arguments: dict[str, str], said: str, is_error: bool
) -> None:
    @tool(name="write_file")
    def mine(path: str, content: str) -> str:
        """Write nothing."""
        return f"mine: {path}"

    plant(root, {"a.txt": "hello"})

    result = await create_tool_executor(root, [mine])(name, arguments)

    assert result.text.startswith(said)
    assert result.is_error is is_error
    assert result.duration >= 0


def test_s3_schemas_are_in_the_form_of_chat_completions() -> None:
    schemas = built_in_tool_schemas()

    assert tuple(schema["function"]["name"] for schema in schemas) == BUILT_IN_TOOLS
    assert schemas[0]["type"] == "function"
    assert schemas[0]["function"]["parameters"]["required"] == ["path"]


# `todoread` and `todowrite` (S2).


MILK = {"content": "Buy milk", "status": "pending", "priority": "high"}
DONE = {"content": "Write it down", "status": "completed", "priority": "low"}


async def test_the_list_is_replaced_and_read_back_with_what_is_not_done_counted() -> None:
    store = TodoStore()
    todoread, todowrite = make_todo_tools(store)

    assert json.loads((await todoread.run({})).text) == {"todos": [], "incompleteCount": 0}
    written = await todowrite.run({"todos": [MILK, DONE, {**MILK, "status": "in_progress"}]})
    assert written == (read := await todoread.run({}))
    assert json.loads(read.text)["todos"][:2] == [dict(todo) for todo in read.details["todos"]][:2] == [MILK, DONE]
    assert read.details["incompleteCount"] == 2
    assert store.todos[0] == TodoItem("Buy milk", "pending", "high")


@rows(
    ("todo", "problem"),
    [
        ({**MILK, "status": "done"}, "todos[0].status: expected one of 'pending', 'in_progress', "),
        ({**MILK, "priority": 1}, "todos[0].priority: expected one of 'high', 'medium', 'low'"),
        ({"content": "x"}, "todos[0].status: missing"),
        ({**MILK, "id": 1}, "todos[0].id: unknown"),
    ],
)  # fmt: skip
async def test_a_wrong_task_list_is_an_error_and_changes_nothing(todo: object, problem: str) -> None:
    store = TodoStore([TodoItem("a", "pending", "low")])

    result = await make_todo_tools(store)[1].run({"todos": [todo]})

    assert result.is_error
    assert problem in result.text
    assert len(store.todos) == 1


async def test_tools_of_two_agents_share_no_list_no_terminal_and_no_processes(tmp_path: Path) -> None:
    """The first agent's state is that of direct calls; a later one begins with none."""
    store, processes = TodoStore(), Processes("program", settle=0.0)
    tools = [*make_todo_tools(store), *make_collection("terminal", Workspace(tmp_path), ShellOptions(), processes)]

    def make(*steps: Step) -> Agent:
        return Agent(ScriptedModel([*steps]), tools, approve=lambda _: True, preset="passthrough")

    def told(run: Run) -> list[str]:
        return [message.text for message in run.messages if isinstance(message, ToolMessage)]

    reads: Step = [
        call("todoread"), call("terminal", command="echo $TOKEN; pwd", persistent=True), call("process_output"),
        call("process_stop", id="bg_1"),
    ]  # fmt: skip
    command = "TOKEN=of-ada; mkdir -p a; cd a"
    begins: Step = [
        call("todowrite", todos=[MILK]), call("terminal", command="sleep 1000", background=True),
        call("terminal", command=command, persistent=True),
    ]  # fmt: skip
    ada, bob = make(begins, "Done.", reads, "Done."), make(reads, "Done.")
    await ada.run("Begin")
    others = told(await bob.run("Look"))
    mine = told(await ada.run("Look"))[3:]

    assert [json.loads(read[0])["todos"] for read in (mine, others)] == [[MILK], []]
    assert [read[1].split() for read in (mine, others)] == [["of-ada", f"{tmp_path}/a"], [str(tmp_path)]]
    assert others[2:] == ["(no background processes)", "there is no background process 'bg_1'; there are: none"]
    assert mine[2] == "bg_1 is running: sleep 1000"
    assert "bg_1 ended: stopped" in mine[3]
    assert [todo.content for todo in store.todos] == ["Buy milk"]


DECLARED = """\
tools:
  - name: kubectl_get
    description: "Get Kubernetes resources"
    category: read
    cmd: ./show
    args: ["get", "{{resource}}"]
    optional_args: {namespace: ["-n", "{{namespace}}"]}
    parameters:
      resource: {type: string, enum: [pods, services], description: "The resource type"}
      namespace: {type: string, description: "The Kubernetes namespace", pattern: "^[a-z0-9-]+$", optional: true}
  - {name: show, description: Show a text., category: read, cmd: ./show, args: ["{{text}}", "--is={{text}}"],
     parameters: {text: {type: string, maxLength: 100}}}
  - {name: a, description: d, category: read, cmd: ./show, args: ["{{x}}"], parameters: {x: {type: string}}}
  - {name: b, description: d, category: read, cmd: ./show, args: ["--", "{{x}}"], parameters: {x: {type: string}}}
  - {name: c, description: d, category: read, cmd: ./show, args: ["{{x}}"],
     parameters: {x: {type: string, enum: [-v, -q]}}}
  - {name: d, description: d, category: read, cmd: ./show, args: ["{{x}}"], parameters: {x: {type: integer}}}
  - {name: e, description: d, category: read, cmd: ./show, args: ["{{x}}{{y}}"],
     parameters: {x: {type: string}, y: {type: string}}}
  - {name: list, description: List., category: read, cmd: ./show, args: [],
     optional_args: {all: [--all], count: ["--count={{ count }}"]},
     parameters: {all: {type: boolean, optional: true},
                  count: {type: number, minimum: 0, maximum: 9.5, optional: true}}}
  - {name: none, description: d, category: read, cmd: no-such-program}
  - {name: slow, description: d, category: read, cmd: ./show, args: ["{{a}}"],
     parameters: {a: {type: string, pattern: "(a+)+b"}}}
  - {name: missing, description: d, category: read, cmd: ./show, env: {X: "${NOT_SET_ANYWHERE}"}}
  - {name: deploy, description: Deploy., category: admin, cmd: ./show,
     env: {TOKEN: "Bearer ${DEPLOY_TOKEN}", PLAIN: text}}
"""


@pytest.fixture
def declared(root: Path, tmp_path: Path) -> Mapping[str, Tool]:
    """Tools of a file beside which lies a program `show`, which prints each of its arguments in brackets."""
    show = '#!/bin/sh\nfor argument; do printf "[%s]" "$argument"; done; echo\nenv >&2\n'
    plant(tmp_path, {"show": show, "tools.yaml": DECLARED})
    (tmp_path / "show").chmod(0o755)
    return {tool.name: tool for tool in load_tools(tmp_path / "tools.yaml", Workspace(root))}


def test_s6_7_a_declared_tool_is_registered(declared: Mapping[str, Tool]) -> None:
    tool = declared["kubectl_get"]

    assert (tool.category, tool.description) == ("read", "Get Kubernetes resources")
    named = {"type": "string", "pattern": "^(?:^[a-z0-9-]+$)$", "description": "The Kubernetes namespace"}
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "resource": {"type": "string", "enum": ["pods", "services"], "description": "The resource type"},
            "namespace": named,
        },
        "required": ["resource"],
        "additionalProperties": False,
    }


METACHARACTERS = (
    "; rm -rf ~", "$(touch x)", "`touch x`", "a b  c", "'\"", "*", "${HOME}", "{{text}}", "| cat", "> out", "", "\\",
    "&",
)  # fmt: skip
OPTION, PODS = "invalid arguments: x: '{}' would be taken as an option; it may not begin with -", {"resource": "pods"}
WRONG = "invalid arguments: {}"


@pytest.mark.slow
@rows(
    ("name", "arguments", "said"),
    [
        ("kubectl_get", PODS, "[get][pods]"),
        ("kubectl_get", {**PODS, "namespace": "a-1"}, "[get][pods][-n][a-1]"),
        ("kubectl_get", {"resource": "pods; rm -rf ~"},
         WRONG.format("resource: expected one of 'pods', 'services'; found 'pods; rm -rf ~'")),
        *(("kubectl_get", {**PODS, "namespace": name},
           WRONG.format(f"namespace: expected a text that matches ^[a-z0-9-]+$ as a whole, found {name!r}"))
          for name in ("a;b", "a\n")),
        ("kubectl_get", {**PODS, "namespace": "-all"},
         WRONG.format("namespace: '-all' would be taken as an option; it may not begin with -")),
        ("kubectl_get", {"more": 1}, WRONG.format("resource: missing; more: unknown; use resource, namespace")),
        *(("show", {"text": text}, f"[{text}][--is={text}]") for text in METACHARACTERS),
        ("a", {"x": "-rf"}, OPTION.format("-rf")),
        ("b", {"x": "-rf"}, "[--][-rf]"),
        ("c", {"x": "-v"}, "[-v]"),
        ("d", {"x": -1}, OPTION.format("-1")),
        ("d", {"x": 5.0}, "[5]"),
        ("e", {"x": "", "y": "-rf"}, OPTION.format("-rf")),
        ("list", {"all": True, "count": 2.5}, "[--all][--count=2.5]"),
        ("list", {"all": False, "count": 3}, "[--count=3]"),
        ("list", {"count": 10}, WRONG.format("count: expected at most 9.5, found 10")),
        ("none", {}, "cannot start 'no-such-program': no such program on PATH"),
        ("missing", {}, "the environment variable NOT_SET_ANYWHERE is not set; the tool needs it"),
        ("slow", {"a": "a" * 50},
         WRONG.format(f"a: expected a text that matches (a+)+b as a whole, found {'a' * 50!r}")),
    ],
)  # fmt: skip
async def test_s6_7_to_s6_9_arguments_are_only_characters_or_refused_before_anything_runs(
    declared: Mapping[str, Tool], root: Path, name: str, arguments: dict[str, Any], said: str
) -> None:
    result = await declared[name].run(arguments)

    assert result.text.splitlines()[0] == said
    assert result.is_error is not said.startswith("[")
    assert list(root.iterdir()) == []


async def test_s6_13_declared_variables_are_passed_and_expanded_once(
    declared: Mapping[str, Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "secret ${HOME}")
    monkeypatch.setenv("NOT_DECLARED", "hidden")

    result = await declared["deploy"].run({})

    assert "TOKEN=Bearer secret ${HOME}\n" in result.text
    assert "PLAIN=text\n" in result.text
    assert "NOT_DECLARED" not in result.text


def test_the_gate_sees_the_program_and_its_arguments(declared: Mapping[str, Tool], root: Path, tmp_path: Path) -> None:
    toolbox = Toolbox(declared.values(), Workspace(root))

    facts = describe(ToolCall("1", "kubectl_get", {"resource": "pods"}, "read"), toolbox)

    assert facts.argv == (f"{tmp_path}/show", "get", "pods")
    assert dict(facts.executables) == {f"{tmp_path}/show": f"{tmp_path}/show"}
    assert facts.command is None


HEAD = "tools:\n  - name: t\n    description: d\n    category: read\n    cmd: x\n"
PARAMETER = HEAD + '    args: ["{{a}}"]\n    parameters:\n      a: '


@pytest.mark.slow
@rows(
    ("text", "problem"),
    [
        ("tools: {}", ":1:8: expected a list, found a mapping"),
        ("other: []", ":1:1: unknown key 'other'; there are: tools"),
        ("tools:\n  - cmd: x", ":2:5: the key 'name' is missing"),
        ("tools: [", "not valid YAML"),
        (HEAD + "    argz: []", ":6:5: unknown key 'argz'; did you mean 'args'?"),
        (HEAD.replace("read", "reed"), ":4:15: expected one of 'read', 'write', 'admin', found 'reed'"),
        (HEAD.replace("name: t", "name: a b"), ":2:11: 'a b' is no name for a tool"),
        (HEAD.replace("cmd: x", 'cmd: "{{x}}"'), ":5:10: cmd is the program itself"),
        (HEAD.replace("description: d", 'description: ""'), ":3:18: the text is empty"),
        (HEAD + '    args: ["{{y}}"]', ":6:12: there is no parameter 'y'; parameters: none"),
        (HEAD + '    args: ["{{y z}}"]', ":6:12: '{{y z}}' has braces that belong to no variable"),
        (HEAD + "    args: [1]", ":6:12: expected a text, found 1"),
        (
            PARAMETER + '{type: string, optional: true}',
            ":6:12: the parameter 'a' is optional; arguments with it belong in optional_args",
        ),
        (HEAD + "    parameters:\n      a: {type: string}", "the parameter 'a' stands in no argument"),
        (HEAD + '    optional_args: {b: ["x"]}', "there is no parameter 'b' that these arguments could depend on"),
        (PARAMETER + '{type: text}', ":8:17: expected one of 'string', "),
        (PARAMETER + '{type: string, pattern: "["}', "the pattern '[' is not supported: missing ]"),
        (PARAMETER + '{type: string, pattern: "(?=b)b"}', ":8:34: the pattern '(?=b)b' is not supported: "),
        (PARAMETER + '{type: integer, maxLength: 3}', "its limits do not fit the type integer"),
        (PARAMETER + '{type: string, enum: [1]}', "expected a string, found 1"),
        (PARAMETER + '{type: string, enum: []}', "the list is empty"),
        (PARAMETER + '{type: number, minimum: x}', "are numbers"),
        (PARAMETER + '{type: string, optional: 1}', "true or false"),
        (HEAD + "    env: {A=B: x}", "is no name for an environment variable"),
        (HEAD + "    env: {A: 1}", "expected a text, found 1"),
        (HEAD + HEAD.removeprefix("tools:\n"), ":6:11: the tool 't' is declared already, in "),
    ],
)  # fmt: skip
def test_a_mistake_is_an_error_at_load_with_file_line_and_column(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text(text)

    with pytest.raises(DeclarationError) as caught:
        read_declarations(file)

    assert str(caught.value).startswith(f"{file}:")
    assert problem in str(caught.value)


def test_a_file_may_declare_nothing_and_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for text in ("", "tools:\n", "tools: []\n"):
        (tmp_path / "tools.yaml").write_text(text)
        assert read_declarations(tmp_path / "tools.yaml") == ()

    with pytest.raises(DeclarationError, match="cannot be read"):
        read_declarations(tmp_path / "none.yaml")
