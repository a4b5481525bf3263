"""What one result may take of the context in the preset `default`: its ends; the rest is in a file."""

import os
import re
from pathlib import Path

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, call
from agent.models.model import ModelRequest
from agent.models.scripted import ScriptedCall
from agent.presets.equipment import equip
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import ApprovalAsked, CallAnswered

MOST = 31 * 1024


def test_thirty_kilobytes_of_an_output_reach_the_model_and_it_can_read_the_rest(tmp_path: Path) -> None:
    def middle(request: ModelRequest) -> ScriptedCall:
        [path] = re.findall(r"\[all of it is in (\S+)\]", request.messages[-1].text)
        return call("bash", command=f"sed -n 50000p {path}")

    model = ScriptedModel([call("bash", command="seq 1 100000"), middle, "Done."])
    run = Agent(model, equip(PRESETS["default"], tmp_path), workspace=tmp_path).run_sync("Count")

    shown, read = [event.result for event in run.events if isinstance(event, CallAnswered)]
    assert len(shown) < MOST
    assert shown.startswith("1\n2\n")
    assert "\n100000\n" in shown
    assert read.strip() == "50000"


def test_the_file_with_the_rest_can_be_read_by_the_file_tools_and_nothing_beside_it(tmp_path: Path) -> None:
    def path_in(request: ModelRequest) -> str:
        [path] = re.findall(r"\[all of it is in (\S+)\]", request.messages[2].text)
        return str(path)

    model = ScriptedModel(
        [
            call("bash", command="seq 1 100000"),
            lambda request: call("read_file", path=path_in(request)),
            lambda request: call("write_file", path=path_in(request), content="mine"),
            lambda request: call("read_file", path=f"{path_in(request)}/../../other-outputs/x.txt"),
            "Done.",
        ]
    )
    run = Agent(model, equip(PRESETS["default"], tmp_path), workspace=tmp_path).run_sync("Count")

    _, read, written, beside = [event.result for event in run.events if isinstance(event, CallAnswered)]
    assert read.startswith("1\n2\n")
    assert "outside_allowed_paths" in written
    assert "outside_allowed_paths" in beside


def test_a_long_file_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("x" * 300_000)

    model = ScriptedModel([call("read_file", path="long.txt"), "Done."])
    run = Agent(model, equip(PRESETS["default"], tmp_path), workspace=tmp_path).run_sync("Read")

    assert all(len(event.result) < MOST for event in run.events if isinstance(event, CallAnswered))


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


@pytest.mark.parametrize(("category", "asks"), [("write", False), ("admin", True)])
def test_only_administration_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, category: str, asks: bool
) -> None:
    (tmp_path / "tools.yaml").write_text(TOOLS.format(category=category))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho applied $3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    preset = evolve(PRESETS["workspace"], tools_file=str(tmp_path / "tools.yaml"))
    model = ScriptedModel([call("kubectl_apply", file="pod.yaml"), "Done."])

    agent = Agent(model, equip(preset, tmp_path), preset=preset, workspace=tmp_path, approve=lambda _: False)
    run = agent.run_sync("Go")

    assert any(isinstance(event, ApprovalAsked) for event in run.events) is asks
    [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
    assert answered.outcome == ("rejected" if asks else "ran")
