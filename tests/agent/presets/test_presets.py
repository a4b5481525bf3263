"""Presets: what an option may be, what happens under each, and what `default` shows of a long result."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields

from agent import Agent, Preset, ScriptedModel, call
from agent.models.model import ModelRequest
from agent.presets import PRESETS
from agent.presets.equipment import equip
from agent.presets.preset import OptionError
from agent.session.agent import Run
from agent.vocabulary.events import ApprovalAsked, CallAnswered
from tests.agent.conftest import MakeAgent
from tests.agent.presets.table import ELSEWHERE, ORDER, ROWS, Row
from tests.agent.presets.table import workspace as workspace
from tests.agent.session.conftest import anyio_backend as anyio_backend
from tests.tables import rows


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.option)
@rows("preset", PRESETS.values())
async def test_each_cell_of_the_table_has_its_effect(make_agent: MakeAgent, row: Row, preset: Preset) -> None:
    assert await row.scene(make_agent, preset) == row.cells[preset.name]
    if preset.name == "default":
        assert await row.scene(make_agent, evolve(preset, **{row.option: row.other})) != row.cells[preset.name]


OF_COMMANDS = ROWS[[row.option for row in ROWS].index("max_timeout") :]
DIFFERENT_UNCONFINED = {"sandbox": "written"}
"""The rows of S1 and S2 that differ in the environment of the user, in which their specifications run."""


@pytest.mark.anyio
@pytest.mark.slow
@rows(("preset", "row"), [(PRESETS[name], row) for name in ("autonomous", "coding") for row in OF_COMMANDS])
async def test_s1_and_s2_differ_unconfined_in_what_their_commands_reach_alone(
    make_agent: MakeAgent, row: Row, preset: Preset
) -> None:
    outcome = await row.scene(make_agent, evolve(preset, sandbox="off"))

    assert outcome == DIFFERENT_UNCONFINED.get(row.option, row.cells[preset.name])


def test_the_table_has_all_presets_and_all_options() -> None:
    """A new option needs a row to the table or a place where its effect is tested."""
    options = {field.name for field in fields(Preset)} - {"name"}

    assert tuple(PRESETS) == ORDER
    assert options == {row.option for row in ROWS} | set(ELSEWHERE)


# Options, from Python or as text: nothing is coerced, and a wrong one is told in one sentence.


WRONG_FROM_PYTHON: list[tuple[dict[str, Any], str]] = [
    ({"max_iterations": "5"}, "expected a whole number or none, found '5'"),
    ({"max_iterations": True}, "expected a whole number or none, found True"),
    ({"max_iterations": 3.0}, "expected a whole number or none, found 3.0"),
    ({"max_iterations": 0}, "'max_iterations' must be >= 1: 0"),
    ({"attempts": None}, "expected a whole number, found None"),
    ({"sequential": "false"}, "expected true or false, found 'false'"),
    ({"sequential": 1}, "expected true or false, found 1"),
    ({"timeout": float("nan")}, "expected a number or none, found nan"),
    ({"timeout": 0}, "'timeout' must be > 0: 0"),
    ({"limit_text": 5}, "expected a text, found 5"),
    ({"allowed_paths": "~/work"}, "expected a list of texts, found '~/work'"),
    ({"allow": ["a", 5]}, "expected a list of texts, found ('a', 5)"),
    ({"stop_after": "turn"}, "expected 'call' or 'step', found 'turn'"),
    ({"policy": "defalt"}, "there is no policy 'defalt'; did you mean 'default'?"),
    ({"system_prompt": "{who}"}, "a system prompt may hold {workspace}, {tools},"),
    ({"name": None}, "expected a text, found None"),
]


@rows(("option", "said"), WRONG_FROM_PYTHON)
def test_a_wrong_value_from_python_is_refused(option: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Preset(**{"name": "mine", **option})

    assert said in str(caught.value)


@rows(
    ("name", "text", "value"),
    [
        ("max_iterations", "None", None),
        ("policy", "none", None),
        ("sequential", "TRUE", True),
        ("limit_text", "none", "none"),
        ("allow", "deploy_app,write_file", ("deploy_app", "write_file")),
        ("allow", "", ()),
        ("denied_paths", "none", ()),
        ("allowed_paths", "~/a b,/c", ("~/a b", "/c")),
    ],
)
def test_options_are_given_as_values_or_as_text_that_is_read_by_their_type(name: str, text: str, value: object) -> None:
    for given in (text, value):
        assert getattr(PRESETS["default"].with_options({name: given}), name) == value


@rows(
    ("name", "text", "said"),
    [
        ("max_iterations", "many", "option max_iterations='many': expected a whole number or none, found 'many'"),
        ("max_iterations", "0", "option max_iterations='0': 'max_iterations' must be >= 1: 0"),
        ("attempts", "none", "expected a whole number"),
        ("max_tokens", 2.5, "option max_tokens=2.5: "),
        ("mode", "corn", "option mode='corn': expected 'interactive' or 'cron', found 'corn'"),
        ("max_iteration", "1", "there is no option 'max_iteration'; did you mean 'max_iterations'?"),
        ("name", "other", "there is no option 'name'"),
    ],
)
def test_wrong_text_is_told_in_one_sentence(name: str, text: object, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        PRESETS["default"].with_options({name: text})

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@rows("preset", PRESETS.values())
def test_every_value_of_every_preset_can_be_given_as_text(preset: Preset) -> None:
    """Any mix is legal, and the command line reaches every row."""
    options = {
        name: ",".join(value) if isinstance(value, tuple) else "none" if value is None else str(value)
        for name, value in preset.configuration().items()
        if name != "name"
    }

    from_text = PRESETS["default"].with_options(options)

    assert {**from_text.configuration(), "name": preset.name} == preset.configuration()


# What one result may take of the context in the preset `default`: its ends; the rest is in a file.

MOST = 31 * 1024
COUNT = call("bash", command="seq 1 100000")


def run_in(folder: Path, *steps: Any, preset: Preset = PRESETS["default"], **options: Any) -> Run:
    model = ScriptedModel([*steps, "Done."])
    return Agent(model, equip(preset, folder), workspace=folder, preset=preset, **options).run_sync("Go")


def results(run: Run) -> list[str]:
    return [event.result.text for event in run.events if isinstance(event, CallAnswered)]


def rest_of(request: ModelRequest) -> str:
    """The file with all of the first result."""
    [path] = re.findall(r"\[all of it is in (\S+)\]", request.messages[2].text)
    return str(path)


def test_thirty_kilobytes_of_an_output_reach_the_model_and_it_can_read_the_rest_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    shown, middle, read, written, beside = results(
        run_in(
            tmp_path,
            COUNT,
            lambda request: call("bash", command=f"sed -n 50000p {rest_of(request)}"),
            lambda request: call("read_file", path=rest_of(request)),
            lambda request: call("write_file", path=rest_of(request), content="mine"),
            lambda request: call("read_file", path=f"{rest_of(request)}/../../other-outputs/x.txt"),
        )
    )

    assert len(shown) < MOST
    assert shown.startswith("1\n2\n")
    assert "\n100000\n" in shown
    assert middle.strip() == "50000"
    assert read.startswith("1\n2\n")
    assert "outside_allowed_paths" in written
    assert "outside_allowed_paths" in beside


def test_a_long_file_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 300_000)

    [shown] = results(run_in(tmp_path, call("read_file", path="long.txt")))
    assert len(shown) < MOST


# Tools from `tools.yaml` under the preset `workspace`: writing ones run without a question (S0 6.1).

TOOLS = """
tools:
  - name: kubectl_apply
    description: Apply a manifest.
    category: {category}
    cmd: kubectl
    args: [apply, -f, "{{{{file}}}}"]
    parameters:
      file: {{type: string, description: The manifest.}}
"""


@pytest.mark.parametrize(("category", "outcome"), [("write", "ran"), ("admin", "rejected")])
def test_only_administration_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, category: str, outcome: str
) -> None:
    (tmp_path / "tools.yaml").write_text(TOOLS.format(category=category))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho applied $3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    preset = evolve(PRESETS["workspace"], tools_file=str(tmp_path / "tools.yaml"))

    run = run_in(tmp_path, call("kubectl_apply", file="pod.yaml"), preset=preset, approve=lambda _: False)

    assert any(isinstance(event, ApprovalAsked) for event in run.events) is (category == "admin")
    assert [event.outcome for event in run.events if isinstance(event, CallAnswered)] == [outcome]


def test_a_path_that_would_match_nothing_is_refused() -> None:
    preset = PRESETS["default"]
    for option, path in (("allowed", "/a/*"), ("allowed", "$DATA/x"), ("denied", "**/x"), ("denied", "a/$B")):
        with pytest.raises(OptionError):
            preset.with_options({f"{option}_paths": path})
    assert preset.with_options({"denied_paths": "secrets/*,$HOME/x"}).denied_paths == ("secrets/*", "$HOME/x")
