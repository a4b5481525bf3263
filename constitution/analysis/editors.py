"""Editors, pagers, debuggers and terminals: commands within their options, or in their input, that start programs."""

import re

from constitution.analysis.interpreters import touched
from constitution.analysis.other_code import read_code
from constitution.analysis.python_code import read_python
from constitution.analysis.steps import (
    BARE_SHELL,
    Command,
    Found,
    Script,
    Started,
    Steps,
)
from constitution.effects import Effect
from constitution.shell.flow import NOTHING
from constitution.tables.rows import is_bare_shell, read_line

__all__ = ["editor", "emacs", "pager", "screen", "tmux"]

ESCAPES = re.compile(r"(?:!|\bshell\b|\bsystem\(|\bterminal\b|\bterm\b)(.*)", re.S)
CODE = re.compile(r"^\s*:?(lua|luado|py3?|python3?|py3do|pydo|rubydo|ruby|perl|perldo)\b\s*(?:<<\s*\w+)?(.*)", re.S)
EDITOR_TAKES = frozenset(("-c", "-ex", "-iex", "--cmd", "-S", "--eval-command", "-o", "-O", "-sc", "-Esc", "-esc"))
EDITOR_RUNS = ("-c", "-ex", "-iex", "--cmd", "--eval-command", "-o", "-O", "-sc", "-Esc", "-esc")

DUMPS = re.compile(r"\b(generate-core-file|gcore|dump\s+(binary\s+)?memory|process\s+save-core)\b")

LISP_SHELL = re.compile(
    r"\((?:shell-command(?:-to-string)?|async-shell-command|compile|eshell-command|call-process-shell-command"
    r"|start-process-shell-command\s+\"[^\"]*\"\s+\S+)\s+\"((?:[^\"\\]|\\.)*)\""
)
LISP_TERMINAL = re.compile(r"\((?:ansi-term|term|vterm|shell|eshell)\b\s*\"?[^)]*\)")
LISP_PROCESS = re.compile(r"\((?:call-process|start-process\s+\"[^\"]*\"\s+\S+|make-process)\s+([^)]*)\)")
LISP_DELETES = re.compile(r"\(delete-(directory|file)\s+(?:\(expand-file-name\s+)?\"([^\"]*)\"")
LISP_WRITES = re.compile(r"\((?:write-region|append-to-file|write-file)[^\"()]*(?:\"[^\"]*\"[^\"()]*)?\"([^\"]*)\"")


def editor(command: Command) -> Steps:
    """vim, ed and debuggers: commands in options, or in the input, may start programs with `!` or `shell`."""
    line = read_line(command.argv[1:], EDITOR_TAKES, long_style=True)
    if {"-p", "--pid"} & line.flags and any(DUMPS.search(word) for word in command.argv):
        yield Found(Effect.TAKE_KEYS, says="read the memory of a process")
    for text in (*line.value_of(*EDITOR_RUNS), *(word[1:] for word in command.argv[1:] if word[:1] == "+")):
        yield from _ex_command(text)
    for text in command.stdin.text.splitlines():
        if match := re.match(r"\s*(?::?[%\d,$]*\s*(?:[rw]\s*)?!|shell\s)(.*)", text):
            yield from _started(match[1])


def _ex_command(text: str) -> Steps:
    yield from _files_of_vim(text)
    code = CODE.match(text)
    if code is not None:
        reading = read_python(code[2].strip()) if code[1].startswith("py") else read_code(code[2])
        yield from touched(reading, code[2])
    elif match := ESCAPES.search(text):
        yield from _started(match[1].strip(" )'\""))


VIM_DELETES = re.compile(r"\bdelete\(\s*(?:expand\(\s*)?['\"]([^'\"]+)['\"]\s*\)?(\s*,\s*['\"]rf?['\"])?")
VIM_WRITES = re.compile(r"^\s*:?\s*(?:w|wr|write|sav|saveas|up|update)!?\s+(?:>>\s*)?([^\s!|][^|]*)")


def _files_of_vim(text: str) -> Steps:
    """`:call delete("x", "rf")`, `:w FILE`."""
    for path, tree in VIM_DELETES.findall(text):
        effect = Effect.DELETE_TREE if "rf" in tree else Effect.DELETE
        yield Found(effect, path=path)
    if match := VIM_WRITES.match(text):
        yield Found(Effect.WRITE, path=match[1].strip())


def _started(command: str) -> Steps:
    """A command, or a shell in which anything may be typed."""
    if is_bare_shell(command):
        yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)
    yield Script(command)


def emacs(command: Command) -> Steps:
    """`emacs --batch --eval '(shell-command "...")'`."""
    for text in command.argv[1:]:
        if LISP_TERMINAL.search(text):
            yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)
        for script in LISP_SHELL.findall(text):
            yield Script(script.replace('\\"', '"'))
        for words in LISP_PROCESS.findall(text):
            yield Started(re.findall(r"\"([^\"]*)\"", words) or [":"], NOTHING)
        for kind, path in LISP_DELETES.findall(text):
            effect = Effect.DELETE_TREE if kind == "directory" else Effect.DELETE
            yield Found(effect, path=path)
        for path in LISP_WRITES.findall(text):
            yield Found(Effect.WRITE, path=path)


def pager(command: Command) -> Steps:
    """`less +!COMMAND`."""
    for word in command.argv[1:]:
        if word.startswith("+") and "!" in word:
            yield from _started(word.partition("!")[2])


TMUX_TAKES = frozenset("-S -L -t -c -s -n -x -y -e -F -f -p -l -h -b -d".split())  # noqa: SIM905
TMUX_RUNS = frozenset(
    """
    new new-session neww new-window splitw split-window send send-keys run run-shell if if-shell respawnp respawn-pane
    respawnw respawn-window popup display-popup pipep pipe-pane confirm-before
    """.split()  # noqa: SIM905
)
KEYS = re.compile(r"^(Enter|C-m|C-j|KPEnter|Space|Escape|C-c|C-d|C-u|C-l|Tab|BSpace)$")


def tmux(command: Command) -> Steps:
    """`tmux new -d COMMAND`, `tmux send-keys TEXT Enter`, `tmux run-shell COMMAND`."""
    line = read_line(command.argv[1:], TMUX_TAKES - {"-d"})
    words = [word for word in line.operands[1:] if not KEYS.match(word)]
    if not line.operands or line.operands[0] not in TMUX_RUNS or not words:
        return
    if any(" " in word for word in words):
        for word in words:
            if " " in word and not word.startswith("#"):
                yield Script(_typed(word))
    else:
        start = command.argv.index(words[0])
        yield Script(_typed(" ".join(word for word in command.argv[start:] if not KEYS.match(word))))


SCREEN_TAKES = frozenset(("-S", "-L", "-t", "-c", "-s", "-h", "-p", "-X", "-r", "-x"))


def screen(command: Command) -> Steps:
    """`screen -dm COMMAND`, `screen -X stuff TEXT`."""
    for word in command.argv[1:]:
        if " " in word:
            yield Script(_typed(word))
    inner = read_line(command.argv[1:], SCREEN_TAKES, to_operand=True).operands
    if inner and "-X" not in command.argv:
        yield Started(list(inner))


def _typed(text: str) -> str:
    """Return what is typed, without the keys at its end."""
    return re.sub(r"(\\n|\\r|\\015|\^M|\n|\r)+$", "", text)
