"""What the caller found on the disk raises a verdict, or answers a doubt; without it a doubt stays one."""

from constitution import DEFAULT, GATED, PASSTHROUGH, Action, Disk, Level, PathUse, Policy, Verdict, judge, mentions
from tests.constitution.examples import labelled_rows
from tests.tables import rows

UNSAVED = Disk(
    folders=("/ws/build", "/ws/src"),
    matches={"/ws/*.txt": "/ws/a.txt\0/ws/new.txt", "/ws/s*": "/ws/secret.pem\0/ws/src", "/ws/l*": "/ws/link"},
    unsaved=("/ws/new.txt", "/ws/src/changed.py", "/ws/build/out.js", "/ws/x.log"),
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


def test_the_user_is_asked_about_files_that_git_could_not_restore() -> None:
    levels = {Level.ask: DEFAULT, Level.deny: GATED, Level.allow: PASSTHROUGH}
    lost = commands("lost")

    assert len(lost) > 50
    assert [(at, it) for it in lost for at, policy in levels.items() if level(it, UNSAVED, policy) is not at] == []


@rows("expected", [Level.allow, Level.ask])
def test_files_that_can_be_restored_and_packages_that_the_project_names_are_no_question(expected: Level) -> None:
    assert [command for command in commands(expected) if level(command, UNSAVED) is not expected] == []


@rows("command", ["cat s*", "cat l*", "head -1 ./s*", "cp s* /tmp/"])
def test_a_pattern_is_judged_by_what_it_stands_for(command: str) -> None:
    assert level(command, UNSAVED) is not Level.allow
    assert level(command, FOUND) is Level.allow


def test_a_pattern_behind_a_link_stands_for_what_is_there() -> None:
    resolved = {"/ws/temporary": "/tmp"}
    action = Action("bash", "write", "/ws", home="/home/me", command="rm -rf temporary/*", resolved=resolved)

    assert judge(action).level is Level.ask
    assert "/ws/temporary" in mentions("cd /ws; rm -rf temporary/*").paths
    assert mentions("rm $PWD/new.txt").lost == ("new.txt",)


def test_a_folder_that_is_there_can_be_gone_to() -> None:
    assert level("cd build; rm -rf *", FOUND) is Level.allow
    assert level("cd nope; rm -rf *", FOUND) is Level.ask
    assert level("rm -rf build; cd build; rm -rf *", FOUND) is Level.ask


def test_a_file_that_has_another_name_elsewhere_is_not_written_unasked() -> None:
    assert level("echo x >> shared.txt", UNSAVED) is Level.ask
    assert level("cat shared.txt", UNSAVED) is Level.allow
    assert level("rm shared.txt", UNSAVED) is Level.allow


@rows("command", ["cd store && git log", "git -C store status", "git --git-dir=store log"])
def test_a_repository_within_the_workspace_is_not_used_unasked(command: str) -> None:
    assert level(command, UNSAVED) is Level.ask
    assert level(command, FOUND) is Level.allow


@rows(("access", "expected"), [("write", Level.ask), ("delete", Level.ask), ("read", Level.allow)])
def test_a_file_tool_that_replaces_unsaved_work_is_asked_about_like_a_command(access: str, expected: Level) -> None:
    use = PathUse("new.txt", "/ws/new.txt", access)  # type: ignore[arg-type]

    assert judge(Action("x", "write", "/ws", home="/home/me", paths=(use,), disk=UNSAVED)).level is expected


def test_a_question_names_what_is_lost() -> None:
    action = Action("bash", "write", "/ws", home="/home/me", command="rm -rf src new.txt", disk=UNSAVED)

    assert judge(action).reasons == (
        "rm would delete src/changed.py, which version control could not bring back",
        "rm would delete new.txt, which version control could not bring back",
    )


@rows(
    ("command", "explanation"),
    [
        ("find src -name '*.pyc' -exec rm {} +", "rm would delete src/**/*.pyc, where no unsaved work is known"),
        ("rm -rf build", "rm would delete build recursively, where no unsaved work is known"),
        ("npm i left-pad", "npm would install a package that the command names, which the project declares"),
        ("ls", "no rule objects"),
        ("echo x > saved.txt", "no rule objects"),
    ],
)
def test_an_allowed_command_says_which_fact_decided(command: str, explanation: str) -> None:
    facts = {"ls": "/usr/bin/ls"}  # as of any caller that has looked at the disk
    action = Action("bash", "write", "/ws", home="/home/me", command=command, disk=UNSAVED, executables=facts)
    verdict = judge(action)

    assert verdict.level is Level.allow
    assert verdict.explanation == explanation
    assert judge(action, PASSTHROUGH) == Verdict.allow()
