"""Which variables change what later commands do, whatever stands in these."""

import pytest

from constitution import changes_commands

CHANGING = """
    PATH HOME IFS CDPATH BASH_ENV ENV LD_PRELOAD LD_LIBRARY_PATH PS4 PROMPT_COMMAND GIT_SSH_COMMAND GIT_CONFIG_COUNT
    PAGER LC_ALL LANG PYTHONPATH PERL5OPT NODE_OPTIONS MAKEFLAGS GLOBIGNORE SHELLOPTS BASHOPTS EXECIGNORE
"""
PLAIN = "X DATABASE_URL PWD OLDPWD USER TERM NODE_ENV DEBUG VIRTUAL_ENV PATHS HOMEPAGE"


@pytest.mark.parametrize("name", CHANGING.split())
def test_what_shells_and_everyday_programs_obey_changes_commands(name: str) -> None:
    assert changes_commands(name)


@pytest.mark.parametrize("name", PLAIN.split())
def test_plain_variables_do_not(name: str) -> None:
    assert not changes_commands(name)
