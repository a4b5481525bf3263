"""What the caller found on the disk raises a verdict, or answers a doubt; without it a doubt stays one."""

from attrs import evolve

from constitution import (
    DEFAULT,
    GATED,
    PASSTHROUGH,
    STRICT,
    WORKSPACE,
    Action,
    Disk,
    Level,
    Policy,
    Verdict,
    judge,
    mentions,
    read_rule,
)  # fmt: skip
from tests.constitution.examples import labelled_rows
from tests.tables import rows

PROJECT = Disk(
    folders=("/ws/build", "/ws/src"),
    matches={"/ws/*.txt": "/ws/a.txt\0/ws/new.txt", "/ws/s*": "/ws/secret.pem\0/ws/src", "/ws/l*": "/ws/link"},
    linked=("/ws/shared.txt",),
    repositories=("/ws/store",),
    declared=("left-pad", "typing-extensions"),
)
FOUND = Disk(folders=("/ws/build",))


def level(command: str, disk: Disk, policy: Policy = DEFAULT) -> Level:
    resolved = {"/ws/link": "/etc/passwd"}
    action = Action("bash", "write", "/ws", home="/home/me", command=command, disk=disk, resolved=resolved)
    return judge(action, policy).level


def commands(label: str) -> list[str]:
    """The commands of `disk.tsv` that carry a label."""
    return [command for said, command in labelled_rows("disk.tsv") if said == label]


@rows("expected", [Level.allow, Level.ask])
def test_packages_that_the_project_names_are_no_question(expected: Level) -> None:
    assert [command for command in commands(expected) if level(command, PROJECT) is not expected] == []


@rows("command", ["cat s*", "cat l*", "head -1 ./s*", "cp s* /tmp/"])
def test_a_pattern_is_judged_by_what_it_stands_for(command: str) -> None:
    assert level(command, PROJECT) is not Level.allow
    assert level(command, FOUND) is Level.allow


def test_a_pattern_behind_a_link_stands_for_what_is_there() -> None:
    resolved = {"/ws/temporary": "/tmp"}
    action = Action("bash", "write", "/ws", home="/home/me", command="rm -rf temporary/*", resolved=resolved)

    assert judge(action).level is Level.ask
    assert "/ws/temporary" in mentions("cd /ws; rm -rf temporary/*").paths


def test_a_folder_that_is_there_can_be_gone_to() -> None:
    assert level("cd build; rm -rf *", FOUND) is Level.allow
    assert level("cd nope; rm -rf *", FOUND) is Level.ask
    assert level("rm -rf build; cd build; rm -rf *", FOUND) is Level.ask


def test_a_file_that_has_another_name_elsewhere_is_not_written_unasked() -> None:
    assert level("echo x >> shared.txt", PROJECT) is Level.ask
    assert level("cat shared.txt", PROJECT) is Level.allow
    assert level("rm shared.txt", PROJECT) is Level.allow


@rows("command", ["cd store && git log", "git -C store status", "git --git-dir=store log"])
def test_a_repository_within_the_workspace_is_not_used_unasked(command: str) -> None:
    assert level(command, PROJECT) is Level.ask
    assert level(command, FOUND) is Level.allow


@rows(
    ("command", "explanation"),
    [
        ("npm i left-pad", "npm would install a package that the command names, which the project declares"),
        ("ls", "no rule objects"),
        ("echo x > saved.txt", "no rule objects"),
    ],
)
def test_an_allowed_command_says_which_fact_decided(command: str, explanation: str) -> None:
    facts = {"ls": "/usr/bin/ls"}  # as of any caller that has looked at the disk
    action = Action("bash", "write", "/ws", home="/home/me", command=command, disk=PROJECT, executables=facts)
    verdict = judge(action)

    assert verdict.level is Level.allow
    assert verdict.explanation == explanation
    assert judge(action, PASSTHROUGH) == Verdict.allow()


UNDOABLE = [
    "git reset --hard",
    "git -C src clean -fdx",
    "cd src && git stash drop",
    "rm -rf *",
    "rm .env",
    "rm .git/index",
]
NOT_UNDOABLE = [
    "echo x > .git/config",
    "rm -rf .git",
    "rm ~/notes.txt",
    "cd .. && git reset --hard",
    "git -C $A reset --hard",
]


@rows("policy", [DEFAULT, evolve(STRICT, known_only=False), evolve(WORKSPACE, blocklist=())])
def test_a_loss_in_a_folder_that_is_kept_is_no_question_and_any_other_one_is(policy: Policy) -> None:
    def level_where(command: str, *kept: str) -> Level:
        return judge(Action("bash", "write", "/ws", home="/home/me", command=command, kept=kept), policy).level

    assert [it for it in UNDOABLE if level_where(it, "/ws") is not Level.allow] == []
    assert [it for it in UNDOABLE if Level.allow in (level_where(it), level_where(it, "/other"))] == []
    assert [it for it in NOT_UNDOABLE if level_where(it, "/ws") is Level.allow] == []


def test_policies_that_demand_more_ask_also_where_the_workspace_is_kept() -> None:
    action = Action("bash", "write", "/ws", home="/home/me", command="git reset --hard", kept=("/ws",))
    own = read_rule("ask history_loss name=mine")

    assert judge(action, GATED).level is Level.deny
    assert judge(action, DEFAULT.with_rules(own)).rule == "mine"


@rows("unkept, command", [
    ("/ws/data/big", "rm -rf *"), ("/ws/data", "rm data/.env"), ("data", "rm data/.env"), ("data", "git reset --hard"),
])  # fmt: skip
def test_what_the_user_leaves_out_of_snapshots_does_not_count_as_kept(unkept: str, command: str) -> None:
    action = Action("bash", "write", "/ws", home="/home/me", command=command, kept=("/ws",))

    assert judge(action).level is Level.allow
    assert judge(evolve(action, unkept=(unkept,))).level is Level.ask


def test_history_outside_of_what_is_kept_is_not_lost_unasked() -> None:
    """A workspace within a repository, and a worktree of one elsewhere."""
    action = Action("bash", "write", "/ws", home="/home/me", command="cd a; git reset --hard", kept=("/ws",))

    assert mentions("cd a; git reset --hard").repositories == ("a/.git", ".git")
    assert judge(action).level is Level.allow
    assert judge(evolve(action, resolved={"a/.git": "/repository/.git"})).level is Level.ask
