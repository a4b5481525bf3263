"""What programs say of themselves (`cp --help`) is compared with the tables: no option of theirs hides a file from us.

The tables were written by people; the help is a source of its own. Programs that are not installed, or whose help is
written in another manner, say nothing here.
"""

import os
import re
import shutil
import subprocess
from functools import cache

import pytest

from constitution import Action, Effect, deeds_of

READERS = (
    "cat tac nl head tail wc sort uniq cut paste join comm fold fmt expand od base64 sha256sum md5sum diff cmp stat"
)
CHANGERS = "cp mv ln install rm rmdir mkdir mkfifo touch truncate shred split tee chmod chown chgrp gzip xz zstd ls du"
SEARCHERS = "grep sed rg"
PROGRAMS = f"{READERS} {CHANGERS} {SEARCHERS}".split()

OPTION = re.compile(r"^ {1,8}(?:(-\w)\b)?(?:, *)?(--[\w-]+)?((?:\[?[= ]?[<\[{]?[A-Z'{][\w'|,.-]*)?)(?=[\s\]>}]|$)")
PRINTS = "-c --stdout --to-stdout -l --list -t --test"
MEANS_OTHERWISE = {"gzip": PRINTS, "xz": PRINTS, "zstd": PRINTS, "sed": "-i --in-place", "ln": "-s --symbolic"}
"""Options with which files are not written, or are not read: examples show what they do."""


@cache
def options_of(program: str) -> tuple[str, ...]:
    """The options that a program's help names, each with a value where it needs one."""
    if shutil.which(program) is None:
        return ()
    told = subprocess.run(
        [program, "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
        env={**os.environ, "LC_ALL": "C"},
    )
    found = []
    for line in told.stdout.splitlines():
        said = OPTION.match(line)
        names = [name for name in (said[1], said[2]) if name] if said else []
        value = said[3] if said and names else ""
        if value.startswith("["):  # a value that may be left out stands in the same word
            value = ""
        found += [f"{name} 5" if value else name for name in names]
    return tuple(found)


def deeds(command: str) -> set[tuple[Effect, str]]:
    """What is done to which path; to delete all of something is to delete it."""
    told = deeds_of(Action("bash", "write", "/ws", home="/home/me", command=command))
    return {
        (Effect.DELETE if "DELETE" in deed.effect.name else deed.effect, deed.path)
        for deed in told
        if deed.path and deed.effect is not Effect.DISCARD
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_option_hides_a_file(program: str) -> None:
    """`cat -n x` reads `x`, since `-n` has no value; `head -n 5 x` does too."""
    files = "600 /srv/a /srv/b"
    plain = deeds(f"{program} {files}")
    otherwise = MEANS_OTHERWISE.get(program, "").split()

    hidden = [option for option in options_of(program) if not plain <= deeds(f"{program} {option} {files}")]

    assert plain
    assert [option for option in hidden if option not in otherwise] == []
