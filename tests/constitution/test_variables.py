"""Which variables change what later commands do, whatever stands in these."""

import pytest

from constitution import Level, changes_commands, judge_command

CHANGING = """
    PATH HOME IFS CDPATH BASH_ENV ENV LD_PRELOAD LD_LIBRARY_PATH PS4 PROMPT_COMMAND GIT_SSH_COMMAND GIT_CONFIG_COUNT
    PAGER LC_ALL LANG PYTHONPATH PERL5OPT NODE_OPTIONS MAKEFLAGS GLOBIGNORE SHELLOPTS BASHOPTS EXECIGNORE
"""
PLAIN = "X DATABASE_URL PWD OLDPWD USER TERM NODE_ENV DEBUG VIRTUAL_ENV PATHS HOMEPAGE"


@pytest.mark.parametrize("name", CHANGING.split())
def test_variables_of_shells_and_everyday_programs_change_commands(name: str) -> None:
    assert changes_commands(name)


@pytest.mark.parametrize("name", PLAIN.split())
def test_plain_variables_do_not_change_commands(name: str) -> None:
    assert not changes_commands(name)


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("env LD_PRELOAD=./x.so ls", Level.ask),
        ("env A=b LD_PRELOAD=/tmp/x.so ls", Level.deny),
        ("env PATH=/tmp/x ls", Level.ask),
        ("env A=b PAGER='rm -rf /' git log", Level.deny),
        ("env 'BASH_FUNC_ls%%=() { rm -rf /; }' bash -c ls", Level.deny),
        ("PS4='$(rm -rf /)'; set -x; ls", Level.deny),
        ("X='a[$(rm -rf /)]'; echo $((X))", Level.deny),
        ("printf -v LD_PRELOAD /tmp/x; export LD_PRELOAD; ls", Level.deny),
        ("read LD_PRELOAD < f; export LD_PRELOAD; ls", Level.ask),
        ("export 'PATH=/tmp/x'; ls", Level.ask),
        ("HOME=/etc; cat ~/shadow", Level.deny),
        ("HOME=/etc; cd; cat shadow", Level.deny),
        ("if x; then HOME=/etc; fi; rm -r ~/x", Level.ask),
        ("HOME=$X; cd; rm -r x", Level.ask),
        ("env A=b B='c d' git status", Level.allow),
        ("env -i PATH=/usr/bin ls", Level.allow),
        ("PS1='$(git branch) '; PS4='+ $LINENO '; set -x; ls", Level.allow),
        ("read -r X; declare -i Y=1; echo $X", Level.allow),
        ("export HOME=/tmp/h; mkdir -p ~/x; cd ~/x; npm test", Level.ask),
    ],
)
def test_they_are_judged_however_they_are_set(command: str, level: Level) -> None:
    assert judge_command(command, "/workspace", home="/home/user").level is level
