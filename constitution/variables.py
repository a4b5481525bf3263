"""Which variables of a shell change what later commands do, whatever stands in these commands.

A judgement reads a command's words. `git status` is something else where `PATH` leads elsewhere, `ls ~` where `HOME`
does, any command where `BASH_ENV` or `PS4` holds text that a shell runs. What is written in the command at hand is
judged; what was set earlier is not seen. So nobody should carry these from one command to the next.
"""

__all__ = ["COMMANDS", "FUNCTIONS", "PRELOADS", "PROMPTS", "changes_commands"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRELOADS = _names("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONSTARTUP PERL5OPT RUBYOPT")
"""They hold files that programs load."""

COMMANDS = _names(
    """
    PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF
    GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS PROMPT_COMMAND LESSOPEN LESSCLOSE BROWSER RSYNC_RSH
    """
)
"""They hold commands that programs, or the shell itself, run."""

FUNCTIONS = "BASH_FUNC_"
"""Variables of the environment whose names begin so are functions to the next bash."""

PROMPTS = _names("PS0 PS1 PS2 PS3 PS4")
"""They hold text whose substitutions a shell runs before it shows it; `PS4` also where commands are only traced."""

_READING = _names(
    """
    PATH HOME IFS CDPATH GLOBIGNORE EXECIGNORE FUNCNEST POSIXLY_CORRECT SHELLOPTS
    LANG LANGUAGE LOCPATH NLSPATH GCONV_PATH
    """
)
"""What a shell finds by them is not what the command says: programs, folders, words, letters."""

_CODE = _names(
    """
    NODE_OPTIONS NODE_PATH RUBYLIB GEM_HOME GEM_PATH CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
    MAKEFLAGS GNUMAKEFLAGS MAKEFILES COMPILER_PATH GCC_EXEC_PREFIX RUSTC_WRAPPER RUSTC SHELL CURL_HOME WGETRC
    TAR_OPTIONS INPUTRC LESS LESSKEY MANOPT VIMINIT EXINIT EMACSLOADPATH LUA_INIT LUA_PATH LUA_CPATH
    R_PROFILE R_ENVIRON PHPRC
    """
)
"""They hold options, files or folders of code that everyday programs obey."""

_BEGINNINGS = ("BASH", "LC_", "LD_", "DYLD_", "GIT_", "PYTHON", "PERL")


def changes_commands(name: str) -> bool:
    """Tell whether a variable changes what later commands do. The list knows shells and everyday programs, not all."""
    return name in PRELOADS | COMMANDS | PROMPTS | _READING | _CODE or name.startswith(_BEGINNINGS)
