"""Which variables of a shell change what later commands do, whatever stands in these commands.

A judgement reads a command's words. `git status` is something else where `PATH` leads elsewhere, `ls ~` where `HOME`
does, any command where `BASH_ENV` or `PS4` holds text that a shell runs. What is written in the command at hand is
judged; what was set earlier is not seen. So nobody should carry these from one command to the next.

Variable("PAGER GIT_PAGER", COMMAND)                        # the value is a command
Variable("HISTSIZE", Effect.COVER_TRACKS, values="^0$")     # such a value has this effect
"""

from enum import Enum, auto

from attrs import field, frozen

from constitution.effects import Effect

__all__ = ["FUNCTIONS", "PROMPTS", "VARIABLES", "Holds", "Variable", "changes_commands"]


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
        "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONSTARTUP PERL5DB",
        Holds.LOADED,
        match=("LD_PRELOAD=./x.so ls", "export BASH_ENV=/tmp/x", "DYLD_INSERT_LIBRARIES=x ls"),
        not_match=("LD_DEBUG=libs ls",),
    ),
    Variable(
        "NODE_OPTIONS PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS",
        Holds.OPTIONS,
        match=(
            "NODE_OPTIONS='--require /tmp/x.js' node a.js",
            "NODE_OPTIONS=--import=/tmp/x.mjs node a.js",
            "JAVA_TOOL_OPTIONS=-javaagent:/tmp/x.jar mvn test",
            "_JAVA_OPTIONS=-Xbootclasspath/a:/tmp/x.jar java A",
            "PERL5OPT=-M/tmp/x perl a.pl",
            "RUBYOPT=-r/tmp/x.rb ruby a.rb",
        ),
        not_match=(
            "NODE_OPTIONS=--max-old-space-size=4096 node a.js",
            "NODE_OPTIONS='--require ./x.js' node a.js",
            "_JAVA_OPTIONS=-Xmx2g mvn test",
            "RUBYOPT='-W0 -rbundler/setup' rake",
            "PERL5OPT=-Mstrict perl a.pl",
        ),
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
        "DATABASE_URL PGHOST MONGO_URL MONGODB_URI REDIS_URL",
        Holds.TEXT,
        Effect.CLOUD_CHANGE,
        r"^\0|^(?!sqlite)\w+://[^/]*@?(?!localhost|127\.)[\w-]+\.[\w.-]+",
        "work on a database of another machine",
        match=(
            "DATABASE_URL=$STAGING_URL alembic upgrade head",
            "DATABASE_URL=postgres://a@db.x.com/y rake db:migrate",
        ),
        not_match=("DATABASE_URL=postgres://localhost/x rake db:migrate", "DATABASE_URL=sqlite:///x.db flask run"),
    ),
    Variable(
        "RAILS_ENV APP_ENV DJANGO_ENV",
        Holds.TEXT,
        Effect.CLOUD_CHANGE,
        r"^(production|prod|staging|live)$",
        "work on what others use",
        match=("RAILS_ENV=production rake db:migrate",),
        not_match=("RAILS_ENV=test rake db:migrate",),
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

FUNCTIONS = "BASH_FUNC_"
"""Variables of the environment whose names begin so are functions to the next bash."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROMPTS = _set("PS0 PS1 PS2 PS3 PS4")
"""They hold text whose substitutions a shell runs before it shows it; `PS4` also where commands are only traced."""

_READING = _set(
    """
    PATH HOME IFS CDPATH GLOBIGNORE EXECIGNORE FUNCNEST POSIXLY_CORRECT SHELLOPTS
    LANG LANGUAGE LOCPATH NLSPATH GCONV_PATH
    """
)
"""What a shell finds by them is not what the command says: programs, folders, words, letters."""

_CODE = _set(
    """
    NODE_OPTIONS NODE_PATH RUBYLIB GEM_HOME GEM_PATH CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
    MAKEFLAGS GNUMAKEFLAGS MAKEFILES COMPILER_PATH GCC_EXEC_PREFIX RUSTC_WRAPPER RUSTC SHELL CURL_HOME WGETRC
    TAR_OPTIONS INPUTRC LESS LESSKEY MANOPT VIMINIT EXINIT EMACSLOADPATH LUA_INIT LUA_PATH LUA_CPATH
    R_PROFILE R_ENVIRON PHPRC
    """
)
"""They hold options, files or folders of code that everyday programs obey."""

_TABLE = frozenset(name for row in VARIABLES if row.holds is not Holds.TEXT for name in row.names)

_BEGINNINGS = ("BASH", "LC_", "LD_", "DYLD_", "GIT_", "PYTHON", "PERL")


def changes_commands(name: str) -> bool:
    """Tell whether a variable changes what later commands do. The list knows shells and everyday programs, not all."""
    return name in _TABLE | PROMPTS | _READING | _CODE or name.startswith(_BEGINNINGS)
