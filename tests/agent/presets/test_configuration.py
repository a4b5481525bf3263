"""Configuration files: a preset and its options from YAML, told with file, line, column and the nearest valid key."""

from pathlib import Path

import pytest
from attrs import evolve

from agent.history.playback import replay
from agent.history.rebuilding import rebuild
from agent.log.reading import read_log
from agent.models.scripted import ScriptedModel, call
from agent.presets import PRESETS, preset_named
from agent.presets.configuration import KEYS, add_user_rule, read_configuration, read_user_rules
from agent.presets.preset import OptionError, Preset
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from agent.vocabulary.events import GateApproved
from constitution import CommandRule, Level
from tests.tables import rows

GOOD = """\
# how we work here
preset: workspace
options:
  max_iterations: 5       # enough
  max_failures: null
  timeout: 30
  sequential: false
  allow: [deploy_app, write_file]
  limit_text: "Enough."
security:
  allowed_paths:
    - ~/work
  denied_paths: [~/work/secret, ~/.ssh]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def preset_from_file(path: Path) -> Preset:
    configuration = read_configuration(path)
    return configuration.applied(preset_named(configuration.preset or "default"))


def test_a_file_names_a_preset_and_changes_its_options(file: Path) -> None:
    file.write_text(GOOD)

    preset = preset_from_file(file)

    assert preset == evolve(
        PRESETS["workspace"],
        allow=("deploy_app", "write_file"),
        allowed_paths=("~/work",),
        denied_paths=("~/work/secret", "~/.ssh"),
        max_iterations=5,
        limit_text="Enough.",
        max_failures=None,
        sequential=False,
        timeout=30,
    )


@rows("text", ["", "# nothing here\n", "{}\n", "options: {}\n", "security: {}\n"])
def test_a_file_without_content_configures_nothing(file: Path, text: str) -> None:
    file.write_text(text)

    assert preset_from_file(file) == PRESETS["default"]


@rows(
    ("text", "place", "said"),
    [
        ("preset: gatd\n", "1:9", "there is no preset 'gatd'; did you mean 'gated'"),
        ("pre: gated\n", "1:1", "unknown key 'pre'; did you mean 'preset'?"),
        ("options:\n  max_iteration: 5\n", "2:3", "unknown key 'max_iteration'; did you mean 'max_iterations'?"),
        ("options:\n  name: mine\n", "2:3", "unknown key 'name'"),
        ("options:\n  max_iterations: '5'\n", "2:19", "expected a whole number or none, found '5'"),
        ("options:\n  max_iterations: none\n", "2:19", "found 'none'; write null"),
        ("options:\n  attempts:\n", "2:3", "expected a whole number, found None"),
        ("options:\n  limit_text: 2026-01-01\n", "2:15", "expected a text, found datetime.date"),
        ("options:\n  allow: deploy_app\n", "2:10", "expected a list of texts, found 'deploy_app'"),
        ("options: [max_iterations]\n", "1:10", "expected a mapping with "),
        ("security:\n  allow_paths: []\n", "2:3", "did you mean 'allowed_paths'?"),
        ("security:\n  denied_paths:\n    - ~/.ssh\n    - 5\n", "4:7", "expected a text, found 5"),
        ("- preset\n", "1:1", f"expected a mapping with {', '.join(map(repr, KEYS))}, found a list"),
        ("options:\n  attempts: 1\n  attempts: 2\n", "3:3", "not valid YAML: found duplicate key"),
        ("\tpreset: gated\n", "1:1", "not valid YAML: "),
    ],
)
def test_a_mistake_is_told_with_file_line_and_column(file: Path, text: str, place: str, said: str) -> None:
    file.write_text(text)

    with pytest.raises(OptionError) as caught:
        preset_from_file(file)

    assert str(caught.value).startswith(f"{file}:{place}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@rows(
    ("content", "said"),
    [
        (b"preset: \xff\n", "is not UTF-8"),
        (b"&a [*a]\n", ""),
        (b"[" * 600, "nested too deeply"),
        (b"preset: gated\n---\npreset: coding\n", "not valid YAML"),
        (b"!!python/object/apply:os.system [ls]\n", ""),
    ],
)
def test_a_file_that_is_no_configuration_is_an_error_in_one_sentence(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)

    with pytest.raises(OptionError) as caught:
        preset_from_file(file)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nosuch\.yaml: cannot be read: no such file or directory"):
        preset_from_file(tmp_path / "nosuch.yaml")
    with pytest.raises(OptionError, match="cannot be read: is a directory"):
        preset_from_file(tmp_path)


# The user's rules about commands: read strictly, examples judged, comments kept, and part of every run's preset.


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
def rules_file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def test_rules_of_a_file_are_read(rules_file: Path) -> None:
    deny, allow = read_user_rules(rules_file)

    assert (deny.level, deny.argv, deny.reason) == (
        Level.deny,
        ("make", "deploy"),
        "deploys go through the pipeline",
    )
    assert (allow.level, allow.executable, allow.rule) == (Level.allow, "/usr/bin/npm", "publish")


def test_a_missing_file_means_no_rules(tmp_path: Path) -> None:
    assert read_user_rules(tmp_path / "none.yaml") == ()


@rows(
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


def test_adding_a_rule_keeps_the_comments(rules_file: Path) -> None:
    rule = CommandRule(Level.allow, ("cat", "a b"), "/bin/cat", rule="read")

    add_user_rule(rule, rules_file)

    assert rules_file.read_text().startswith("# what I decided\n")
    assert "# never from here" in rules_file.read_text()
    assert read_user_rules(rules_file)[-1] == rule


def test_adding_the_first_rule_makes_the_file_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "rules.yaml"

    add_user_rule(CommandRule(Level.deny, ("make",)), file)

    assert file.stat().st_mode & 0o777 == 0o600
    assert [rule.argv for rule in read_user_rules(file)] == [("make",)]


def test_a_rule_becomes_an_option_and_the_log_replays_with_it(rules_file: Path, tmp_path: Path) -> None:
    preset = Preset("mine", commands=[str(rule) for rule in read_user_rules(rules_file)])
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


@rows(
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
