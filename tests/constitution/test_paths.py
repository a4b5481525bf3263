"""Paths are compared by components, after links were followed by the caller; denied wins over allowed (S0 6.4)."""

from itertools import product

from attrs import evolve

from constitution import (
    DEFAULT,
    GATED,
    POLICIES,
    Action,
    Level,
    PathUse,
    Policy,
    is_path_safe,
    judge,
    judge_command,
)
from constitution.places import absolute, is_within
from tests.tables import rows

WORKSPACE = POLICIES["workspace"]


def use(path: str, access: str = "read", *, given: str = "") -> Action:
    uses = (PathUse(given or path, path, access),)  # type: ignore[arg-type]
    return Action(access + "_file", "read" if access == "read" else "write", "/home/me/ws", home="/home/me", paths=uses)


@rows("path", ["a", "./a/b", "/ws", "/ws/a", "/ws/../ws/a", "a/../b", "//ws/a"])
def test_paths_in_the_workspace_are_safe(path: str) -> None:
    assert is_path_safe(path, "/ws")


@rows(
    "path",
    ["..", "../a", "/ws-evil", "/ws-evil/a", "/", "/etc/passwd", "/ws/../etc", "a/../../b", "", "/ws/\0", "~"][:-1],
)
def test_paths_that_leave_the_workspace_are_not_safe(path: str) -> None:
    assert not is_path_safe(path, "/ws")


def test_a_path_is_within_a_folder_by_components() -> None:
    assert is_within("/a/b", "/a")
    assert is_within("/a", "/")
    assert not is_within("/ab", "/a")


def test_a_leading_tilde_is_the_home_folder() -> None:
    assert absolute("~/x", "/ws", "/home/me") == "/home/me/x"
    assert absolute("~x", "/ws", "/home/me") == "/ws/~x"


@rows("policy", [GATED, WORKSPACE])
def test_s6_10_a_read_outside_the_allowed_paths_is_denied(policy: object) -> None:
    verdict = judge(use("/srv/other/file"), policy)  # type: ignore[arg-type]

    assert verdict.level is Level.deny
    assert verdict.rule == "outside_allowed_paths"


def test_s6_11_a_write_to_a_denied_path_is_denied_though_an_allowed_root_holds_it() -> None:
    inside = WORKSPACE.with_rules()
    home_is_workspace = Action(
        "write_file", "write", "/home/me", home="/home/me", paths=(PathUse("~/.ssh/x", "/home/me/.ssh/x", "write"),)
    )

    assert judge(home_is_workspace, inside).level is Level.deny


@rows("policy", POLICIES.values())
@rows("access", ["read", "write", "list"])
def test_a_denied_path_within_an_allowed_root_is_called_denied(policy: Policy, access: str) -> None:
    """Not "outside the allowed paths", which it is not: a person would look at the wrong list."""
    locked = evolve(policy, denied_paths=("/home/me/ws/locked",))

    verdict = judge(use("/home/me/ws/locked/x", access), locked)

    assert (verdict.level, verdict.rule) == (Level.deny, "denied_path")
    assert verdict.explanation == f"{access}_file would {access} '/home/me/ws/locked/x', which is a denied path"


def test_the_folder_with_the_runs_own_outputs_may_be_read_and_not_written() -> None:
    read, written = (evolve(use("/tmp/outputs/1.txt", access), outputs="/tmp/outputs") for access in ("read", "write"))
    beside = evolve(use("/tmp/outputs-evil/1.txt"), outputs="/tmp/outputs")
    denied = evolve(DEFAULT, denied_paths=("/tmp/outputs",))

    assert [judge(action, GATED).allowed for action in (read, written, beside)] == [True, False, False]
    assert not judge(read, denied).allowed


def test_a_command_may_read_that_folder_wherever_it_is_and_not_change_it() -> None:
    """As where TMPDIR is a folder in the home."""
    commands = [f"{start} /home/me/tmp/outputs{end}/1.txt" for start in ("sed -n 5p", "rm") for end in ("", "-evil")]
    actions = [
        Action("bash", "write", "/home/me/ws", home="/home/me", command=command, outputs="/home/me/tmp/outputs")
        for command in commands
    ]
    denied = evolve(DEFAULT, denied_paths=("/home/me/tmp",))

    assert [judge(action).allowed for action in actions] == [True, False, False, False]
    assert not judge(actions[0], denied).allowed


def test_s6_12_a_link_that_leads_outside_is_denied_by_where_it_leads() -> None:
    assert judge(use("/etc/hosts", given="link"), WORKSPACE).level is Level.deny
    assert judge(use("/etc/hosts", "write", given="link")).level is Level.deny
    assert judge(use("/home/me/ws/a", given="link")).level is Level.allow


def test_the_allowed_roots_of_the_workspace_policy_are_allowed() -> None:
    assert judge(use("/tmp/agent/x", "write"), WORKSPACE).allowed
    assert judge(use("/home/me/.agent/workspace/x", "write"), WORKSPACE).allowed
    assert not judge(use("/tmp/agent-evil/x", "write"), WORKSPACE).allowed


def test_a_command_is_judged_by_where_its_links_lead() -> None:
    plain = Action("bash", "write", "/ws", home="/home/me", command="cp a build/a")
    link = Action("bash", "write", "/ws", home="/home/me", command="cp a build/a", resolved={"/ws/build": "/etc"})

    assert judge(plain).allowed
    assert judge(link).level is Level.deny


def test_a_link_behind_cd_is_followed() -> None:
    action = Action("bash", "write", "/ws", home="/home/me", command="cd sub && rm -rf x", resolved={"/ws/sub": "/usr"})

    assert judge(action).level is Level.deny


@rows("path", ["/proc/self/root/etc/x", "/proc/1/cwd/x", "/HOME/me/.SSH/id", "/etc/../etc/shadow"])
def test_detours_to_secrets_are_not_allowed(path: str) -> None:
    assert judge_command(f"rm -rf {path}", "/ws", home="/home/me").level > Level.allow


def test_secrets_stay_secret_when_the_workspace_is_the_home_folder() -> None:
    assert judge_command("cat ~/.aws/credentials", "/home/me", home="/home/me").level is Level.deny
    assert judge_command("cat notes.txt", "/home/me", home="/home/me").allowed


def test_a_private_file_of_the_project_is_asked_about() -> None:
    assert judge(use("/home/me/ws/.env")).level is Level.ask


def test_a_path_with_an_unknown_end_is_judged_as_strictly_as_a_known_one() -> None:
    """`~/$X` and `~/*` may stand for `~/x`, `/srv/$X` for `/srv/x`; before, only the folder counted."""
    commands = ("cat {}", "cp {} .", "rm -rf {}", "echo x > {}", "make -f {}", "PATH={} ls", "strip {}", "frob {}")
    folders = ("~/", "~/.config/", "~/work/", "../", "/srv/", "/", "/etc/", "/tmp/", ".git/hooks/", "src/")
    lenient = [
        command.format(folder + end)
        for command, folder, end in product(commands, folders, ("$X", "*", "x$X", "?*", "$X/y"))
        for policy in (DEFAULT, GATED)
        if _level(command.format(folder + end), policy) < _level(command.format(folder + "x"), policy)
    ]

    assert lenient == []


def _level(command: str, policy: Policy) -> Level:
    return judge_command(command, "/home/me/ws", home="/home/me", policy=policy).level
