"""Which names have a form that a table cannot say, and the function that knows it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from constitution.shell.flow import Flow
from constitution.special.builtins import alias, change_folder, print_to_variable, read_variables, set_arguments, trap
from constitution.special.code import INLINE, awk, editor, interpreter, python, sed, terminal
from constitution.special.contents import copy, curl, tee, wget
from constitution.special.later import at, cmake, crontab, make
from constitution.special.search import find, tar, xargs
from constitution.special.settings import database, git, look_up
from constitution.special.shells import shell, source

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["SPECIAL"]

Special = Callable[["Examination", str, list[str], Flow, "Walk"], None]

SPECIAL: dict[str, Special] = {
    "sh": shell,
    "source": source,
    ".": source,
    "python": python,
    "pypy": python,
    "find": find,
    "gfind": find,
    "xargs": xargs,
    "gxargs": xargs,
    "sed": sed,
    "gsed": sed,
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "ed", "red", "view", "gdb", "lldb", "emacs"), editor),
    "tmux": terminal,
    "screen": terminal,
    "tar": tar,
    "gtar": tar,
    "bsdtar": tar,
    "cd": change_folder,
    "pushd": change_folder,
    "popd": change_folder,
    "read": read_variables,
    "mapfile": read_variables,
    "readarray": read_variables,
    "getopts": read_variables,
    "printf": print_to_variable,
    "alias": alias,
    "trap": trap,
    "set": set_arguments,
    "curl": curl,
    **dict.fromkeys(("wget", "aria2c", "axel"), wget),
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv"), copy),
    **dict.fromkeys(("tee", "sponge"), tee),
    "crontab": crontab,
    **dict.fromkeys(("at", "batch"), at),
    **dict.fromkeys(("make", "gmake"), make),
    "cmake": cmake,
    "git": git,
    **dict.fromkeys(("psql", "mysql", "mariadb", "sqlite3", "duckdb"), database),
    **dict.fromkeys(("dig", "nslookup", "host", "ping", "ping6", "drill", "whois", "getent"), look_up),
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
    **{name: interpreter for name in INLINE if "awk" not in name},
}
