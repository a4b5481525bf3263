"""Variables whose value makes programs do something: a table, and what an assignment to one of them means.

Variable("PAGER GIT_PAGER", COMMAND)                        # the value is a command
Variable("HISTSIZE", Effect.COVER_TRACKS, values="^0$")     # such a value has this effect
"""

import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from attrs import field, frozen

from constitution.effects import Effect
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["VARIABLES", "Holds", "Variable", "assigned"]


class Holds(Enum):
    """What a value is, besides text."""

    COMMAND = auto()
    LOADED = auto()  # a file that every program loads
    FOLDERS = auto()  # folders in which programs, or parts of them, are looked for
    OPTIONS = auto()  # options, some of which name files that are loaded
    TEXT = auto()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@frozen
class Variable:
    """A row: names, what a value is, and the effect of setting one that fits the pattern."""

    names: tuple[str, ...] = field(converter=_names)
    holds: Holds = Holds.TEXT
    effect: Effect | None = None
    values: str = ""  # a pattern
    says: str = ""
    match: tuple[str, ...] = ()  # commands that are gated because of this row
    not_match: tuple[str, ...] = ()  # commands that resemble them and are allowed


FORGETS, TRUSTS_ANYBODY = "keep no record of what is done", "no longer check whom a program talks to"

VARIABLES = (
    Variable(
        "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONSTARTUP PERL5OPT RUBYOPT PERL5DB"
        " JAVA_TOOL_OPTIONS"
        " _JAVA_OPTIONS",
        Holds.LOADED,
        match=("LD_PRELOAD=./x.so ls", "export BASH_ENV=/tmp/x", "DYLD_INSERT_LIBRARIES=x ls"),
        not_match=("LD_DEBUG=libs ls",),
    ),
    Variable(
        "NODE_OPTIONS",
        Holds.OPTIONS,
        match=("NODE_OPTIONS='--require /tmp/x.js' node a.js", "NODE_OPTIONS=--import=/tmp/x.mjs node a.js"),
        not_match=("NODE_OPTIONS=--max-old-space-size=4096 node a.js", "NODE_OPTIONS='--require ./x.js' node a.js"),
    ),
    Variable(
        "PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH PYTHONPATH PERL5LIB RUBYLIB NODE_PATH CLASSPATH GCONV_PATH"
        " PYTHONHOME FPATH"
        " GIT_EXEC_PATH",
        Holds.FOLDERS,
        match=("PATH=/tmp/x:$PATH ls", "PYTHONPATH=/tmp/x python a.py", "LD_LIBRARY_PATH=/dev/shm ls"),
        not_match=("PYTHONPATH=src python a.py", "PATH=$PATH:/usr/games ls"),
    ),
    Variable(
        "PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH_COMMAND GIT_SSH"
        " GIT_EXTERNAL_DIFF"
        " GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS PROMPT_COMMAND LESSOPEN LESSCLOSE BROWSER RSYNC_RSH SUDO_EDITOR FCEDIT"
        " SYSTEMD_EDITOR SYSTEMD_PAGER PSQL_EDITOR PSQL_PAGER DELTA_PAGER BAT_PAGER KUBE_EDITOR GH_PAGER GH_EDITOR"
        " GIT_PROXY_COMMAND CC CXX MAKE SHELL CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER npm_config_script_shell"
        " NPM_CONFIG_SCRIPT_SHELL",
        Holds.COMMAND,
        match=("PAGER='rm -rf ~' git log", "GIT_SSH_COMMAND='rm -rf ~' git pull", "CC='rm -rf ~' make"),
        not_match=("PAGER=cat git log", "CC=clang make", "EDITOR=true git commit"),
    ),
    Variable(
        "HISTFILE",
        Holds.TEXT,
        Effect.COVER_TRACKS,
        r"^(/dev/null|/dev/shm/.*|/tmp/.*|)$",
        FORGETS,
        match=("HISTFILE=/dev/null", "export HISTFILE=", "unset HISTFILE"),
        not_match=("HISTFILE=~/.zsh_history", "echo $HISTFILE"),
    ),
    Variable(
        "HISTSIZE HISTFILESIZE SAVEHIST",
        Holds.TEXT,
        Effect.COVER_TRACKS,
        r"^0$",
        FORGETS,
        match=("export HISTSIZE=0", "HISTFILESIZE=0", "SAVEHIST=0"),
        not_match=("HISTSIZE=10000", "export HISTFILESIZE=20000"),
    ),
    Variable(
        "HISTIGNORE HISTORY_IGNORE",
        Holds.TEXT,
        Effect.COVER_TRACKS,
        r"^\*$",
        FORGETS,
        match=("HISTIGNORE='*'", "export HISTORY_IGNORE='*'"),
        not_match=("HISTIGNORE='ls:cd'",),
    ),
    Variable(
        "NODE_TLS_REJECT_UNAUTHORIZED PYTHONHTTPSVERIFY",
        Holds.TEXT,
        Effect.WEAKEN,
        "^0$",
        TRUSTS_ANYBODY,
        match=("NODE_TLS_REJECT_UNAUTHORIZED=0 node x.js", "PYTHONHTTPSVERIFY=0 python x.py"),
        not_match=("NODE_TLS_REJECT_UNAUTHORIZED=1 node x.js",),
    ),
    Variable(
        "GIT_SSL_NO_VERIFY GONOSUMCHECK GONOSUMDB GOINSECURE GOFLAGS npm_config_strict_ssl CURL_INSECURE"
        " AWS_CLI_NO_VERIFY_SSL",
        Holds.TEXT,
        Effect.WEAKEN,
        r"^(1|true|false|\*|-insecure)$",
        TRUSTS_ANYBODY,
        match=("GIT_SSL_NO_VERIFY=true git pull", "GOINSECURE='*' go get x"),
        not_match=("GOFLAGS=-mod=mod go build",),
    ),
    Variable(
        "GOPROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX_URL npm_config_registry NPM_CONFIG_REGISTRY YARN_REGISTRY"
        " UV_DEFAULT_INDEX",
        Holds.TEXT,
        Effect.FOREIGN_PACKAGES,
        r"^http://(?!localhost|127\.)",
        "install from an address",
        match=("PIP_INDEX_URL=http://x.com/simple pip install y", "npm_config_registry=http://x.com npm i"),
        not_match=("GOPROXY=direct go get x", "PIP_INDEX_URL=http://localhost:3141/x pip install y"),
    ),
    Variable(
        "PIP_TRUSTED_HOST",
        Holds.TEXT,
        Effect.WEAKEN,
        ".",
        TRUSTS_ANYBODY,
        match=("PIP_TRUSTED_HOST=x.com pip install y",),
        not_match=("PIP_NO_INPUT=1 pip install y",),
    ),
    Variable(
        "http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy",
        Holds.TEXT,
        Effect.WEAKEN,
        r"^(?!$|(\w+://)?(localhost|127\.0\.0\.1|\[::1\]))[^\0]+$",
        "send what programs say through another machine",
        match=("export https_proxy=http://x.com:8080", "HTTP_PROXY=socks5://x.com:1 curl localhost"),
        not_match=("http_proxy=http://localhost:3128 make", "HTTPS_PROXY= make"),
    ),
)

ROWS: dict[str, Variable] = {name: row for row in VARIABLES for name in row.names}


def assigned(examination: "Examination", name: str, values: tuple[str, ...], walk: "Walk") -> None:
    """Take an assignment to a variable; some make other programs run what they hold."""
    row = ROWS.get(name)
    if row is None:
        return
    for value in values:
        if row.holds is Holds.COMMAND:
            walk.nested(value)
        elif row.holds is Holds.LOADED:
            _loaded(examination, name, value, walk)
        elif row.holds is Holds.FOLDERS:
            _searched(examination, value, walk)
        elif row.holds is Holds.OPTIONS:
            for path in re.findall(r"--(?:require|import|loader|experimental-loader)[= ]+(/\S+)", value):
                _loaded(examination, name, path, walk)
        if row.effect is not None and re.search(row.values, value):
            examination.found(row.effect, walk, program="the command", says=row.says)


def _loaded(examination: "Examination", name: str, value: str, walk: "Walk") -> None:
    says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
    examination.found(Effect.PRELOAD, walk, program="the command", path=value, says=says)


def _searched(examination: "Examination", value: str, walk: "Walk") -> None:
    """Programs are looked for in these folders, those that come before the usual ones first."""
    for folder in value.split(":")[:16]:
        if folder.startswith(UNKNOWN):
            return
        if folder:
            examination.found(Effect.SEARCH_PATH, walk, program="the command", path=folder)
