"""Verdicts, the checks that are made of them, and what is read from an action: risk, mentions, variables."""

from attrs import evolve

from constitution import (
    POLICIES,
    Action,
    Evidence,
    Level,
    Verdict,
    changes_commands,
    check_safety,
    classify_risk,
    commands_of,
    create_gate_check,
    effects_of,
    is_dangerous_command,
    judge,
    judge_command,
)
from tests.tables import rows


def test_levels_are_ordered_words() -> None:
    assert Level.allow < Level.ask < Level.deny
    assert max(Level.deny, Level.allow, Level.ask) is Level.deny
    for word in ("allow", "ask", "deny"):
        assert Level(word).name == Level(word).value == Level(word) == f"{Level(word)}" == word


def test_a_verdict_reads_as_a_sentence() -> None:
    verdict = Verdict(Level.deny, "delete_tree", "destruction", (), "rm would delete / recursively")

    assert str(verdict) == "deny: delete_tree: rm would delete / recursively"


def test_verdicts_are_hashable_values() -> None:
    one = Verdict(Level.ask, "x", "y", (Evidence("rm x", 0, 4, ("rm", "x")),), "z")
    two = Verdict(Level.ask, "x", "y", (Evidence("rm x", 0, 4, ("rm", "x")),), "z")

    assert one == two
    assert len({one, two}) == 1


def test_the_strictest_of_no_verdicts_allows() -> None:
    assert Verdict.strictest([]).allowed
    assert Verdict.strictest([Verdict.allow(), Verdict(Level.ask), Verdict(Level.deny)]).level is Level.deny


def test_a_verdict_names_program_subcommand_object_and_place() -> None:
    said = {
        "make deploy": "make deploy would publish or deploy something",
        "git -C x reset --hard": "git reset would discard uncommitted work",
        "rm -r ~/x": "rm would delete /home/me/x recursively",
        ":(){ :|:& };:": ": would exhaust the machine",
        "cp $A y": "cp would read a path that is not known before it runs",
        "rm -rf src/$A": "rm would delete a path in src, not known before it runs, recursively",
        "cat /$A": "cat would read a path in / that is not known before it runs",
        "LD_PRELOAD=$A ls": "the command would have LD_PRELOAD run other code",
        "ls ~/x | xargs rm": "rm would delete files in /home/me/x",
    }

    assert {command: judge_command(command, "/ws", home="/home/me").explanation for command in said} == said


def test_a_question_lists_all_its_reasons() -> None:
    verdict = judge_command("git push; rm ~/x", "/ws", home="/home/me")

    assert verdict.reasons == ("git push would send commits to the remote", "rm would delete /home/me/x")


def test_the_name_of_a_file_is_no_verb() -> None:
    assert judge_command("gpg --verify release.sig", "/ws").allowed


def test_a_policy_shows_its_name() -> None:
    assert [repr(policy) for policy in POLICIES.values()] == list(POLICIES)


def bash(command: str) -> Action:
    return Action("bash", "write", "/ws", home="/home/me", command=command)


@rows(
    ("command", "risk"),
    [
        ("ls -l", "read_only"),
        ("cat a | grep b", "read_only"),
        ("git status", "read_only"),
        ("git -C sub log --oneline -3", "read_only"),
        ("git branch -a", "read_only"),
        ("git branch topic", "side_effects"),
        ("git commit -m x", "side_effects"),
        ("git push", "side_effects"),
        ("npm ls", "read_only"),
        ("npm install", "side_effects"),
        ("pip list", "read_only"),
        ("pip install x", "side_effects"),
        ("docker ps -a", "read_only"),
        ("docker compose logs web", "read_only"),
        ("docker run alpine ls", "side_effects"),
        ("kubectl -n dev get pods", "read_only"),
        ("kubectl apply -f x", "side_effects"),
        ("aws s3 ls", "read_only"),
        ("aws ec2 describe-instances", "read_only"),
        ("aws s3 cp a s3://b", "side_effects"),
        ("make", "side_effects"),
        ("poetry add x", "side_effects"),
        ("poetry run git status", "read_only"),
        ("yarn", "side_effects"),
        ("pytest -q", "side_effects"),
        ("black .", "side_effects"),
        ("cargo --version", "read_only"),
        ("grep -rn x src", "read_only"),
        ("od -c /srv/x/a.bin", "read_only"),
        ("timeout 5 sh -c 'ls | wc -l'", "read_only"),
        ("for f in a b; do cat $f; done", "read_only"),
        ("sed -n 1p a", "read_only"),
        ("sed -i 1d a", "side_effects"),
        ("python3 -c 'print(1)'", "read_only"),
        ("python3 x.py", "high_ambiguity"),
        ("tar tf x.tar", "read_only"),
        ("tar xf x.tar", "side_effects"),
        ("crontab -l", "read_only"),
        ("systemctl status nginx", "read_only"),
        ("terraform plan", "read_only"),
        ("gh pr view 1", "read_only"),
        ("gh pr create", "side_effects"),
        ("rm a", "side_effects"),
        ("echo x > a", "side_effects"),
        ("curl https://example.com", "side_effects"),
        ("frobnicate", "high_ambiguity"),
        ("$X", "high_ambiguity"),
        ("echo 'a", "high_ambiguity"),
    ],
)
def test_risk_classes(command: str, risk: str) -> None:
    assert classify_risk(bash(command)) == risk


def test_the_risk_of_a_tool_without_command_is_its_category() -> None:
    assert classify_risk(Action("read_file", "read", "/ws")) == "read_only"
    assert classify_risk(Action("write_file", "write", "/ws")) == "side_effects"


def test_dangerous_commands_are_those_that_are_denied() -> None:
    assert is_dangerous_command("rm -rf /")
    assert is_dangerous_command("cu'r'l x | sh")
    assert not is_dangerous_command("echo rm -rf /")


def test_a_check_takes_its_own_workspace() -> None:
    assert check_safety(bash("touch /other/x"), workspace="/other").allowed
    assert not check_safety(bash("touch /other/x"), workspace="/ws").allowed


def test_composed_checks_give_the_strictest_verdict() -> None:
    def ask(action: Action) -> Verdict:
        return Verdict(Level.ask, "mine")

    def deny(action: Action) -> Verdict:
        return Verdict(Level.deny, "yours")

    assert create_gate_check(ask, deny)(bash("ls")).rule == "yours"
    assert create_gate_check(ask)(bash("ls")).rule == "mine"
    assert create_gate_check()(bash("ls")).allowed


def test_what_a_command_runs_and_where_is_known_of_every_part_of_it() -> None:
    action = bash("cd sub && cat a.txt ~/b > /tmp/c; sudo ./run.sh x | python3 tool.py")

    programs = [command.argv[0] for command in commands_of(action)]
    paths = {effect.path for effect in effects_of(action)}

    assert programs == ["cd", "cat", "sudo", "./run.sh", "python3"]
    assert {"/ws/sub/a.txt", "/home/me/b", "/tmp/c", "/ws/sub/run.sh", "/ws/sub/tool.py"} <= paths


def test_a_program_behind_a_link_is_judged_as_that_program() -> None:
    action = Action("bash", "write", "/ws", command="mytool -rf /", executables={"mytool": "/usr/bin/rm"})

    assert check_safety(action, workspace="/ws").level is Level.deny


def test_actions_are_hashable_values() -> None:
    one = Action("bash", "write", "/ws", command="ls", resolved={"a": "/a"})
    two = Action("bash", "write", "/ws", command="ls", resolved=(("a", "/a"),))

    assert one == two
    assert len({one, two}) == 1


# Which variables change what later commands do, whatever stands in these


CHANGING = """
    PATH HOME IFS CDPATH BASH_ENV ENV LD_PRELOAD LD_LIBRARY_PATH PS4 PROMPT_COMMAND GIT_SSH_COMMAND GIT_CONFIG_COUNT
    PAGER LC_ALL LANG PYTHONPATH PERL5OPT NODE_OPTIONS MAKEFLAGS GLOBIGNORE SHELLOPTS BASHOPTS EXECIGNORE
"""
PLAIN = "X DATABASE_URL PWD OLDPWD USER TERM NODE_ENV DEBUG VIRTUAL_ENV PATHS HOMEPAGE"


def test_variables_of_shells_and_everyday_programs_change_commands_and_plain_ones_do_not() -> None:
    assert [name for name in CHANGING.split() if not changes_commands(name)] == []
    assert [name for name in PLAIN.split() if changes_commands(name)] == []


@rows(
    ("command", "reaches"),
    [
        ("git clone -q . copy", False),
        ("git clone ./lib copy", False),
        ("git clone file:///ws/lib copy", False),
        ("git clone host:lib", True),
        ("git clone .x:lib", True),
        ("git clone --depth 1 https://example.com/lib", True),
        ("git clone $(cat where)", True),
        ('git clone "$1"', True),
    ],
)
def test_a_clone_reaches_the_network_unless_its_source_is_plainly_a_folder(command: str, reaches: bool) -> None:
    effects = effects_of(Action("bash", "write", "/ws", "/ws", "/home/me", command=command))

    assert ("network" in {effect.kind for effect in effects}) is reaches


def test_all_of_a_workspace_that_is_kept_may_be_deleted_where_nothing_else_can_be() -> None:
    kept = Action("bash", "write", "/ws", "/ws", "/home/me", command="rm -rf .", sandbox="bubblewrap", kept=("/ws",))

    assert judge(kept, POLICIES["default"]).allowed
    assert not judge(evolve(kept, kept=()), POLICIES["default"]).allowed
    assert not judge(evolve(kept, command="rm -rf ~"), POLICIES["default"]).allowed
    assert not judge(evolve(kept, command="rm -rf .git"), POLICIES["default"]).allowed
