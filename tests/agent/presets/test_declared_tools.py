"""Tools from `tools.yaml` under the preset `workspace`: writing ones run without a question (S0 6.1)."""

import os
from pathlib import Path

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, call
from agent.presets.equipment import equip
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import ApprovalAsked, CallAnswered

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
