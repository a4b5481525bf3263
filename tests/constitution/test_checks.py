import pytest

from constitution import Action, Level, Verdict, check_safety, classify_risk, compose, is_dangerous_command, mentions


def bash(command: str) -> Action:
    return Action("bash", "write", "/ws", home="/home/me", command=command)


@pytest.mark.parametrize(
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
    assert check_safety(bash("rm -rf /other/x"), workspace="/other").allowed
    assert not check_safety(bash("rm -rf /other/x"), workspace="/ws").allowed


def test_composed_checks_give_the_strictest_verdict() -> None:
    def ask(action: Action) -> Verdict:
        return Verdict(Level.ask, "mine")

    def deny(action: Action) -> Verdict:
        return Verdict(Level.deny, "yours")

    assert compose(ask, deny)(bash("ls")).rule == "yours"
    assert compose(ask)(bash("ls")).rule == "mine"
    assert compose()(bash("ls")).allowed


def test_mentions_name_programs_and_paths() -> None:
    found = mentions("cd sub && cat a.txt ~/b > /tmp/c; sudo ./run.sh x | python3 tool.py")

    assert found.programs == ("cd", "cat", "sudo", "./run.sh", "python3")
    assert {"sub", "sub/a.txt", "~/b", "/tmp/c", "sub/run.sh", "sub/tool.py"} <= set(found.paths)


def test_mentions_of_unreadable_text_are_what_can_be_read() -> None:
    assert mentions("rm 'a").programs in ((), ("rm",))


def test_a_program_behind_a_link_is_judged_as_that_program() -> None:
    action = Action("bash", "write", "/ws", command="mytool -rf /", executables={"mytool": "/usr/bin/rm"})

    assert check_safety(action, workspace="/ws").level is Level.deny


def test_actions_are_hashable_values() -> None:
    one = Action("bash", "write", "/ws", command="ls", resolved={"a": "/a"})
    two = Action("bash", "write", "/ws", command="ls", resolved=(("a", "/a"),))

    assert one == two
    assert len({one, two}) == 1
