"""What has to be said so that something is not asked about again: as little as possible, or nothing."""

import pytest

from constitution import DEFAULT, GATED, Action, CommandRule, Level, grants_for, judge, read_command_rule

EXECUTABLES = {"npm": "/usr/bin/npm", "git": "/usr/bin/git", "cat": "/bin/cat", "rm": "/bin/rm", "sudo": "/bin/sudo"}


def action(command: str) -> Action:
    return Action("bash", "write", "/ws", home="/home/me", command=command, executables=EXECUTABLES)


def test_a_grant_is_for_one_argv_its_file_and_the_rule_that_asks() -> None:
    assert grants_for(action("npm publish --tag next")) == (
        CommandRule(Level.allow, ("npm", "publish", "--tag", "next"), "/usr/bin/npm", rule="publish", exact=True),
    )


@pytest.mark.parametrize(
    "command", ["npm publish", "ls && git reset --hard | cat", "git stash drop; git branch -D x", "rm ~/notes.txt"]
)
def test_a_granted_command_is_allowed_and_no_other_with_the_same_beginning(command: str) -> None:
    grants = grants_for(action(command))

    assert grants
    assert judge(action(command), DEFAULT.with_commands(*grants)).allowed
    assert not judge(action("npm publish --tag x"), DEFAULT.with_commands(*grants)).allowed


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "rm -rf /",
        "rm -rf / && npm publish",
        "npm publish 'unterminated",
        "sh -c 'npm publish'",
        "npm publish > ~/x",
        "npm publish $X > $Y",
        "git push --force origin $BRANCH",
        "$CMD x",
        "curl -s https://example.com",  # where it starts is not known
        "git reset --hard; git clean -fd; git stash drop; git branch -D x",
    ],
)
def test_nothing_is_granted_where_no_grant_would_help(command: str) -> None:
    assert grants_for(action(command)) == ()


def test_under_a_gate_that_cannot_ask_nothing_is_granted() -> None:
    assert grants_for(action("npm publish"), GATED) == ()


def test_an_exact_rule_reads_back_from_its_line() -> None:
    rule = grants_for(action("npm publish"))[0]

    assert read_command_rule(str(rule)) == rule
    assert "exact=yes" in str(rule)
    with pytest.raises(ValueError, match="can only be yes"):
        read_command_rule("deny exact=no -- make")


def test_an_allowed_command_names_the_rule_of_the_user_that_decided() -> None:
    grants = grants_for(action("npm publish"))
    verdict = judge(action("npm publish"), DEFAULT.with_commands(*grants))

    assert verdict.granted
    assert verdict.explanation == "a rule of the user allows it: allow npm publish"
    assert [evidence.text for evidence in verdict.evidence] == ["npm publish"]
