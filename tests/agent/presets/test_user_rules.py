"""The user's rules about commands: read strictly, examples judged, comments kept, and part of every run's preset."""

from pathlib import Path

import pytest

from agent.history.playback import replay
from agent.history.rebuilding import rebuild
from agent.log.reading import read_log
from agent.models.scripted import ScriptedModel, call
from agent.presets.policy_files import add_user_rule, read_user_rules
from agent.presets.preset import OptionError, Preset
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from agent.vocabulary.events import GateApproved
from constitution import CommandRule, Level

RULES = """\
# what I decided
commands:
  - deny: make deploy          # never from here
    reason: deploys go through the pipeline
    match: [make deploy, sudo make deploy now]
    not_match: [make test]
  - allow: npm publish
    file: /usr/bin/npm
    rule: publish
    match: [npm publish --tag next]
    not_match: [sudo npm publish]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def test_rules_are_read(file: Path) -> None:
    deny, allow = read_user_rules(file)

    assert (deny.level, deny.argv, deny.reason) == (
        Level.deny,
        ("make", "deploy"),
        "deploys go through the pipeline",
    )
    assert (allow.level, allow.executable, allow.rule) == (Level.allow, "/usr/bin/npm", "publish")


def test_no_file_is_no_rules(tmp_path: Path) -> None:
    assert read_user_rules(tmp_path / "none.yaml") == ()


@pytest.mark.parametrize(
    ("row", "place", "said"),
    [
        ("{deny: make, allow: make}", ":2:5", "a rule says one of"),
        ("{deny: ''}", ":2:5", "needs the words"),
        ("{deny: 'a \"'}", ":2:5", "closing quotation"),
        ("{allow: make}", ":2:5", "must name the file"),
        ("{deny: make, reson: x}", ":2:18", "did you mean 'reason'?"),
        ("{deny: make, match: [ls]}", ":2:5", "'ls' is not concerned"),
        ("{deny: ls, not_match: [ls]}", ":2:5", "'ls' is concerned"),
        ("{allow: rm, file: /bin/rm, match: [rm -rf /]}", ":2:5", "would be deny anyway"),
    ],
)
def test_a_wrong_row_is_told_with_its_place(tmp_path: Path, row: str, place: str, said: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(f"commands:\n  - {row}\n")

    with pytest.raises(OptionError) as caught:
        read_user_rules(file)

    assert f"{file}{place}: " in str(caught.value)
    assert said in str(caught.value)


def test_adding_a_rule_keeps_the_comments(file: Path) -> None:
    rule = CommandRule(Level.allow, ("cat", "a b"), "/bin/cat", rule="read_private")

    add_user_rule(rule, file)

    assert file.read_text().startswith("# what I decided\n")
    assert "# never from here" in file.read_text()
    assert read_user_rules(file)[-1] == rule


def test_adding_the_first_rule_makes_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "rules.yaml"

    add_user_rule(CommandRule(Level.deny, ("make",)), file)

    assert file.stat().st_mode & 0o777 == 0o600
    assert [rule.argv for rule in read_user_rules(file)] == [("make",)]


def test_a_rule_becomes_an_option_and_the_log_replays_with_it(file: Path, tmp_path: Path) -> None:
    preset = Preset("mine", commands=[str(rule) for rule in read_user_rules(file)])
    script = ScriptedModel([call("bash", command="make deploy"), "Done."])
    with Agent(script, workspace_tools(tmp_path), preset=preset, log=tmp_path / "log.jsonl") as agent:
        run = agent.run_sync("go")

    assert "deploys go through the pipeline" in run.messages[2].text
    assert not any(isinstance(step.event, GateApproved) for step in run.steps)
    recorded = read_log(tmp_path / "log.jsonl")
    assert replay(recorded, rebuild(recorded)).difference is None


def test_a_row_makes_a_policy_stricter(tmp_path: Path) -> None:
    preset = Preset("mine", policy_rules=["deny read in workspace name=blind"])
    (tmp_path / "a.txt").write_text("hello")
    script = ScriptedModel([call("bash", command="cat a.txt"), "Done."])
    with Agent(script, workspace_tools(tmp_path), preset=preset) as agent:
        run = agent.run_sync("go")

    assert "rejected: by_constitution: deny: blind: cat would read a.txt" in run.messages[2].text


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("deny fly", "there is no effect 'fly'"),
        ("deny write in worksapce", "did you mean 'workspace'"),
        ("allow write", "can only raise"),
        ("deny", "a rule reads"),
    ],
)
def test_a_row_that_is_no_rule_is_refused(row: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Preset("mine", policy_rules=[row])
