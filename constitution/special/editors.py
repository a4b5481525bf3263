"""Editors, pagers, debuggers and terminals: commands within their options, or in their input, that start programs."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.lexicon import read_code
from constitution.python_code import read_python
from constitution.shell.flow import NOTHING, Flow
from constitution.special.code import touched
from constitution.tables.programs import is_bare_shell, read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

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


def editor(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """vim, ed and debuggers: commands in options, or in the input, may start programs with `!` or `shell`."""
    line = read_line(argv[1:], EDITOR_TAKES, long_style=True)
    if {"-p", "--pid"} & line.flags and any(DUMPS.search(word) for word in argv):
        examination.found(Effect.TAKE_KEYS, walk, program=name, says="take what a process has in its memory")
    for text in (*line.value_of(*EDITOR_RUNS), *(word[1:] for word in argv[1:] if word[:1] == "+")):
        _ex_command(examination, name, text, walk)
    for text in stdin.text.splitlines():
        if match := re.match(r"\s*(?::?[%\d,$]*\s*(?:[rw]\s*)?!|shell\s)(.*)", text):
            _started(examination, name, match[1], walk)


def _ex_command(examination: "Examination", name: str, text: str, walk: "Walk") -> None:
    _files_of_vim(examination, name, text, walk)
    code = CODE.match(text)
    if code is not None:
        reading = read_python(code[2].strip()) if code[1].startswith("py") else read_code(code[2])
        touched(examination, name, reading, code[2], walk)
    elif match := ESCAPES.search(text):
        _started(examination, name, match[1].strip(" )'\""), walk)


VIM_DELETES = re.compile(r"\bdelete\(\s*(?:expand\(\s*)?['\"]([^'\"]+)['\"]\s*\)?(\s*,\s*['\"]rf?['\"])?")
VIM_WRITES = re.compile(r"^\s*:?\s*(?:w|wr|write|sav|saveas|up|update)!?\s+(?:>>\s*)?([^\s!|][^|]*)")


def _files_of_vim(examination: "Examination", name: str, text: str, walk: "Walk") -> None:
    """`:call delete("x", "rf")`, `:w FILE`."""
    for path, tree in VIM_DELETES.findall(text):
        effect = Effect.DELETE_TREE if "rf" in tree else Effect.DELETE
        examination.found(effect, walk, program=name, path=path)
    if match := VIM_WRITES.match(text):
        examination.found(Effect.WRITE, walk, program=name, path=match[1].strip())


def _started(examination: "Examination", name: str, command: str, walk: "Walk") -> None:
    """A command, or a shell in which anything may be typed."""
    if is_bare_shell(command):
        examination.found(Effect.ESCAPE_SHELL, walk, program=name, says="start a shell in which anything can be typed")
    walk.nested(command)


def emacs(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`emacs --batch --eval '(shell-command "...")'`."""
    for text in argv[1:]:
        if LISP_TERMINAL.search(text):
            says = "start a shell in which anything can be typed"
            examination.found(Effect.ESCAPE_SHELL, walk, program=name, says=says)
        for script in LISP_SHELL.findall(text):
            walk.nested(script.replace('\\"', '"'))
        for words in LISP_PROCESS.findall(text):
            examination.examine(re.findall(r"\"([^\"]*)\"", words) or [":"], NOTHING, walk)
        for kind, path in LISP_DELETES.findall(text):
            effect = Effect.DELETE_TREE if kind == "directory" else Effect.DELETE
            examination.found(effect, walk, program=name, path=path)
        for path in LISP_WRITES.findall(text):
            examination.found(Effect.WRITE, walk, program=name, path=path)


def pager(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`less +!COMMAND`."""
    for word in argv[1:]:
        if word.startswith("+") and "!" in word:
            _started(examination, name, word.partition("!")[2], walk)


TMUX_TAKES = frozenset("-S -L -t -c -s -n -x -y -e -F -f -p -l -h -b -d".split())  # noqa: SIM905
TMUX_RUNS = frozenset(
    """
    new new-session neww new-window splitw split-window send send-keys run run-shell if if-shell respawnp respawn-pane
    respawnw respawn-window popup display-popup pipep pipe-pane confirm-before
    """.split()  # noqa: SIM905
)
KEYS = re.compile(r"^(Enter|C-m|C-j|KPEnter|Space|Escape|C-c|C-d|C-u|C-l|Tab|BSpace)$")


def tmux(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tmux new -d COMMAND`, `tmux send-keys TEXT Enter`, `tmux run-shell COMMAND`."""
    line = read_line(argv[1:], TMUX_TAKES - {"-d"})
    words = [word for word in line.operands[1:] if not KEYS.match(word)]
    if not line.operands or line.operands[0] not in TMUX_RUNS or not words:
        return
    if any(" " in word for word in words):
        for word in words:
            walk.nested(_typed(word)) if " " in word and not word.startswith("#") else None
    else:
        start = argv.index(words[0])
        walk.nested(_typed(" ".join(word for word in argv[start:] if not KEYS.match(word))))


SCREEN_TAKES = frozenset(("-S", "-L", "-t", "-c", "-s", "-h", "-p", "-X", "-r", "-x"))


def screen(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`screen -dm COMMAND`, `screen -X stuff TEXT`."""
    for word in argv[1:]:
        if " " in word:
            walk.nested(_typed(word))
    command = read_line(argv[1:], SCREEN_TAKES, to_operand=True).operands
    if command and "-X" not in argv:
        examination.examine(list(command), NOTHING, walk)


def _typed(text: str) -> str:
    """Return what is typed, without the keys at its end."""
    return re.sub(r"(\\n|\\r|\\015|\^M|\n|\r)+$", "", text)
