"""Jobs without a person (S0 6.1, S6.14): what is not listed is denied, and nobody is asked."""

import pytest

from constitution import DEFAULT, POLICIES, WORKSPACE, Action, Level, PathUse, Policy, judge
from constitution.action import Category

DEPLOY = Action("deploy_app", "admin", "/ws", argv=("deploy", "--env", "prod"))
READ = Action("read_file", "read", "/ws", paths=(PathUse("a", "/ws/a", "read"),))
WRITE = Action("write_file", "write", "/ws", paths=(PathUse("a", "/ws/a", "write"),))


def shell(command: str) -> Action:
    return Action("bash", "write", "/ws", home="/home/me", command=command)


def test_s6_14_an_admin_tool_is_denied_in_a_job_unless_its_policy_lists_it() -> None:
    verdict = judge(DEPLOY, WORKSPACE.for_job())

    assert (verdict.level, verdict.rule) == (Level.deny, "admin_not_listed")
    assert verdict.explanation == "deploy_app is an admin tool, and no job policy lists it"
    assert judge(DEPLOY, WORKSPACE.for_job("other")).level is Level.deny
    assert judge(DEPLOY, WORKSPACE.for_job("deploy_app")).allowed


@pytest.mark.parametrize(
    ("action", "attended", "in_a_job", "listed"),
    [
        (READ, "allow", "allow", "allow"),
        (WRITE, "allow", "deny", "allow"),
        (DEPLOY, "ask", "deny", "allow"),
        (shell("ls"), "allow", "deny", "allow"),
        (shell("curl https://example.com"), "ask", "deny", "deny"),
        (shell("rm x"), "deny", "deny", "deny"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.command or value.tool,
)
def test_category_and_mode_decide_together(action: Action, attended: str, in_a_job: str, listed: str) -> None:
    """The table of S0 6.1; a listed shell may do what nobody would have to be asked about."""
    levels = [judge(action, policy).level for policy in (WORKSPACE, WORKSPACE.for_job())]

    assert levels == [attended, in_a_job]
    assert judge(action, WORKSPACE.for_job(action.tool)).level == listed


def test_listing_a_tool_answers_what_would_be_asked_about_it_and_never_lifts_a_denial() -> None:
    asked = Action("push", "write", "/ws", argv=("curl", "https://example.com"))
    denied = Action("push", "write", "/ws", argv=("rm", "-rf", "/"))

    assert judge(asked, WORKSPACE).level is Level.ask
    assert judge(asked, WORKSPACE.for_job("push")).allowed
    assert judge(denied, WORKSPACE.for_job("push")).level is Level.deny
    assert judge(WRITE, WORKSPACE.for_job("read_file")).level is Level.deny


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda policy: policy.name)
@pytest.mark.parametrize("category", ["read", "write", "admin"])
def test_no_policy_asks_in_a_job(policy: Policy, category: Category) -> None:
    commands = ("ls", "curl https://example.com", "chmod 777 x", "$X", "sudo ls", "rm -r x", "echo 'a", " ")
    actions = [Action("tool", category, "/ws", command=command) for command in commands]

    for listed in ((), ("tool",)):
        levels = {judge(action, policy.for_job(*listed)).level for action in actions}
        assert Level.ask not in levels
    assert category == "read" or all(judge(action, policy.for_job()).level is Level.deny for action in actions)


def test_an_unknown_category_counts_as_the_strictest() -> None:
    action = Action("odd", "superuser", "/ws")  # type: ignore[arg-type]

    assert judge(action, DEFAULT.for_job()).level is Level.deny
    assert judge(action, WORKSPACE).level is Level.ask
