"""Which names have a form that a table cannot say, and the function that knows it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from constitution.shell.flow import Flow
from constitution.special.builtins import (
    alias,
    change_folder,
    kill,
    print_to_variable,
    read_variables,
    set_arguments,
    trap,
)
from constitution.special.code import any_language, awk, calculator, interpreter, sed
from constitution.special.consoles import batch, client, console, gradle, php_console, python_console
from constitution.special.contents import copy, curl, tee, wget
from constitution.special.editors import editor, emacs, pager, screen, tmux
from constitution.special.exhaustion import copy_blocks, into_memory, sized
from constitution.special.fetched import unpack
from constitution.special.later import at, cmake, crontab, make
from constitution.special.search import fd, find, parallel, tar, xargs
from constitution.special.sending import copy_over_ssh, file_client, talk
from constitution.special.serving import hunts, locate, serve
from constitution.special.settings import aws, git, look_up, npm, ssh
from constitution.special.shells import shell, source
from constitution.tables import names_of_kind

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["SPECIAL"]

Special = Callable[["Examination", str, list[str], Flow, "Walk"], None]

CLIENTS = (
    *("psql", "mysql", "mariadb", "sqlite3", "duckdb", "sqlplus", "clickhouse-client", "clickhouse", "spark-sql", "bq"),
    *("trino", "snowsql", "cockroach", "cqlsh", "beeline", "hive", "mongosh", "mongo", "cypher-shell", "usql"),
)

SPECIAL: dict[str, Special] = {
    "sh": shell,
    "source": source,
    ".": source,
    "python": python_console,
    "pypy": python_console,
    "find": find,
    "gfind": find,
    "fd": fd,
    "fdfind": fd,
    **dict.fromkeys(("parallel", "sem", "rush"), parallel),
    "xargs": xargs,
    "gxargs": xargs,
    "sed": sed,
    "gsed": sed,
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "ed", "red", "view", "gdb", "lldb", "vimdiff", "gvim"), editor),
    **dict.fromkeys(("emacs", "emacsclient"), emacs),
    **dict.fromkeys(("less", "more", "man", "most"), pager),
    "tmux": tmux,
    "screen": screen,
    "tar": tar,
    "gtar": tar,
    **dict.fromkeys(("fallocate", "truncate", "head", "mkfile"), sized),
    "dd": copy_blocks,
    **dict.fromkeys(("tail", "sort", "tac", "sponge", "shuf"), into_memory),
    **dict.fromkeys(("unzip", "bsdtar", "7z", "unar", "cpio"), unpack),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "ack"), hunts),
    **dict.fromkeys(("locate", "plocate", "mlocate", "mdfind"), locate),
    **dict.fromkeys(("http-server", "serve", "httpd", "webfsd", "darkhttpd", "miniserve", "simple-http-server"), serve),
    **dict.fromkeys(("sftp", "ftp", "lftp", "tftp", "smbclient", "ncftp"), file_client),
    "scp": copy_over_ssh,
    "openssl": talk,
    "cd": change_folder,
    "pushd": change_folder,
    "popd": change_folder,
    "read": read_variables,
    "mapfile": read_variables,
    "readarray": read_variables,
    "getopts": read_variables,
    "printf": print_to_variable,
    "alias": alias,
    "kill": kill,
    "trap": trap,
    "set": set_arguments,
    "curl": curl,
    **dict.fromkeys(("wget", "aria2c", "axel"), wget),
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv"), copy),
    **dict.fromkeys(("tee",), tee),
    "crontab": crontab,
    **dict.fromkeys(("at", "batch"), at),
    **dict.fromkeys(("make", "gmake"), make),
    "cmake": cmake,
    "git": git,
    "npm": npm,
    "aws": aws,
    **dict.fromkeys(("ssh", "autossh"), ssh),
    **dict.fromkeys(CLIENTS, client),
    **dict.fromkeys(("rails", "ipython", "mix", "iex", "flask", "manage.py", "artisan", "jupyter"), console),
    **dict.fromkeys(("gradle", "gradlew"), gradle),
    **dict.fromkeys(("sbatch", "qsub", "bsub", "salloc", "condor_submit"), batch),
    **dict.fromkeys(("dig", "nslookup", "host", "ping", "ping6", "drill", "whois", "getent"), look_up),
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
    **dict.fromkeys(("dc", "bc"), calculator),
    **dict.fromkeys(names_of_kind("any_language"), any_language),
    **dict.fromkeys(names_of_kind("interpreter"), interpreter),
    "php": php_console,
}
