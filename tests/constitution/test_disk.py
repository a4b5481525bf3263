"""What the caller found on the disk raises a verdict, or answers a doubt; without it a doubt stays one."""

from constitution import DEFAULT, GATED, PASSTHROUGH, Action, Disk, Level, PathUse, Policy, Verdict, judge, mentions
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


@rows(
    "command",
    [
        "rm new.txt",
        "rm -f ./new.txt",
        "rm *.txt",
        "rm -rf src",
        "rm -r src/",
        "unlink new.txt",
        "shred new.txt",
        "find src -name '*.py' -delete",
        "find . -name 'new*' -exec rm {} +",
        "for f in *.txt; do rm $f; done",
        "cd src && rm changed.py",
        "(cd src; rm -f changed.py)",
        "sh -c 'rm new.txt'",
        "echo x > new.txt",
        ": > src/changed.py",
        "cat a >| new.txt",
        "echo x | tee new.txt",
        "cp a new.txt",
        "cp a.py src/changed.py",
        "mv a new.txt",
        "install a new.txt",
        "truncate -s 0 new.txt",
        "git checkout -- src",
        "git checkout HEAD~2 -- src/changed.py",
        "git restore src/changed.py",
        "git restore src",
        "rm a.txt new.txt",
        "test -f new.txt && rm new.txt",
        "rm new.txt || true",
        "echo new.txt | xargs rm",
        "sed -i s/a/b/ new.txt",
        "sed --in-place=.orig -e s/a/b/ src/changed.py",
        "perl -pi -e s/a/b/ new.txt",
        "ruby -i -pe '$_.upcase!' new.txt",
        "gawk -i inplace '{ print $1 }' new.txt",
        "dd if=a of=new.txt",
        "ln -sf a new.txt",
        "rsync -a a new.txt",
        "curl -o new.txt localhost/x",
        "uniq a new.txt",
        "python3 -m json.tool a new.txt",
        "gcc -o new.txt a.c",
        "pandoc a --output=new.txt",
        "awk '{ print > \"new.txt\" }' a",
        "sed -n 'w new.txt' a",
        "time -o new.txt ls",
        'python3 -c \'open("new.txt", "w")\'',
        "ed -s new.txt",
        "vim -es '+%d|wq' new.txt",
        "find . -name 'new*' -exec mv {} /dev/null ';'",
        "git restore --staged --worktree src",
        "patch new.txt < x.diff",
        "frobtool -o new.txt a",
        "frobtool --output new.txt a",
        "pg_dump -f new.txt x",
        "sqlite3 x.db '.output new.txt' 'select 1'",
        "vim '+%d' +wq new.txt",
        "printf 'new.txt\\0' | xargs -0 rm",
        "tar xf a.tgz",
        "tar -C src -xzf a.tgz",
        "tar xf a.tgz new.txt",
        "tar -xf a.tgz new.txt",
        "unzip -o a.zip",
        "unzip -o a.zip new.txt",
        "7z x -y a.7z new.txt",
        "patch -p1 < x.diff",
        "gzip -df new.txt.gz",
        "mv new.txt old.txt; rm old.txt",
        "mv src /tmp/ && rm -rf /tmp/src",
        "zip -qm a.zip new.txt",
        "rar m a.rar src",
        "dos2unix new.txt",
        "mogrify -strip src",
        "hyperfine --export-json new.txt ls",
        "pytest --cov-report=xml:new.txt",
        "git apply -R x.patch",
        "sqlite3 new.txt '.restore x'",
        'python3 -c \'import shutil; shutil.copy("a", "new.txt")\'',
    ],
)
def test_the_user_is_asked_about_files_that_git_could_not_restore(command: str) -> None:
    assert level(command, UNSAVED) is Level.ask
    assert level(command, UNSAVED, GATED) is Level.deny
    assert level(command, UNSAVED, PASSTHROUGH) is Level.allow


@rows(
    "command",
    [
        "rm saved.txt",
        "rm -rf build",
        "rm x.log",
        "rm -f build/out.js",
        "find . -name '*.log' -delete",
        "find src -name '*.pyc' -delete",
        "echo x >> new.txt",
        "cat new.txt",
        "mv new.txt renamed.txt",
        "cp new.txt copy.txt",
        "cp -n a new.txt",
        "tee -a new.txt < a",
        "git restore --staged src/changed.py",
        "git checkout -b topic",
        "git checkout main",
        "git add new.txt",
        "echo x > saved.txt",
        "touch new.txt",
        "black src/changed.py",
        "mv saved.txt old.txt; rm old.txt",
        "mv new.txt old.txt; rm x.log",
        "zip -qr a.zip new.txt",
        "dos2unix saved.txt",
        "dos2unix --info new.txt",
        "hyperfine --export-json saved.json ls",
        "jest --coverage src/changed.py",
        "python3 tool.py --json-report=new.txt",
        "git apply x.patch",
        "curl -o src localhost/x",
        "protoc --python_out=src x.proto",
        "vim new.txt",
        "gcc -o build/out.js a.c",
        "grep -o new.txt a",
        "tar xf a.tgz -C build",
        "tar czf a.tgz src",
        "unzip -l a.zip",
        "unzip -n a.zip",
        "patch --dry-run -p1 < x.diff",
    ],
)
def test_files_that_can_be_restored_or_made_again_are_no_loss(command: str) -> None:
    assert level(command, UNSAVED) is Level.allow


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


@rows(
    ("command", "expected"),
    [
        ("npm install left-pad", Level.allow),
        ("npm i left-pad@1.2", Level.allow),
        ("pip install 'Typing_Extensions>=4'", Level.allow),
        ("npm install left-pad evil", Level.ask),
        ("npm install evil", Level.ask),
        ("npx left-pad", Level.allow),
        ("npx evil", Level.ask),
        ("npm ci", Level.allow),
    ],
)
def test_a_package_that_the_project_names_is_installed_unasked(command: str, expected: Level) -> None:
    assert level(command, UNSAVED) is expected


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
