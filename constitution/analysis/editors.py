"""Editors, pagers, debuggers and terminals: commands in their options, scripts or input that start programs."""

import re
from collections.abc import Iterator

from constitution.analysis.interpreters import touched
from constitution.analysis.other_code import quoted, read_code
from constitution.analysis.program_rows import found_in
from constitution.analysis.python_code import read_python
from constitution.analysis.shells import run_script
from constitution.analysis.steps import Command, Found, Script, Started, Steps, Wrote, as_typed
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import Flow, Origin
from constitution.tables import pattern, words_in
from constitution.tables.rows import options_in, read_line

ESCAPES = pattern(r"(?:!|\bshell\b|\bsystem\(|\bterminal\b|\bterm\b)(.*)", re.S)
CODE = pattern(r"^\s*:?(lua|luado|py3?|python3?|py3do|pydo|rubydo|ruby|perl|perldo)\b\s*(?:<<\s*\w+)?(.*)", re.S)
EDITOR_RUNS = ("-c", "-ex", "-iex", "--cmd", "--eval-command", "-o", "-O", "-sc", "-Esc", "-esc")

DUMPS = pattern(r"\b(generate-core-file|gcore|dump\s+(binary\s+)?memory|process\s+save-core)\b")
CHANGES = pattern(r"\s*(set\s+(var|\{)|call|compile|return|jump|signal|kill|(p|print)\b.*[=(])")


def editor(command: Command) -> Steps:
    """vim, ed and debuggers: commands in options, or in the input, may start programs with `!` or `shell`."""
    line = command.read("-c -ex -iex --cmd -S --eval-command -o -O -sc -Esc -esc", long_style=True)
    if {"-p", "--pid"} & line.flags and any(DUMPS.search(word) for word in command.argv):
        yield Found(Effect.TAKE_KEYS, says="read the memory of a process")
    if {"-p", "--pid"} & line.flags and any(map(CHANGES.match, line.value_of("-ex", "-iex", "--eval-command"))):
        yield Found(Effect.RISKY_CODE, says="change or end another process")
    for text in (*line.value_of(*EDITOR_RUNS), *(word[1:] for word in command.argv[1:] if word[:1] == "+")):
        yield from _ex_command(text)
    if command.name in ("ed", "red", "ex") and command.stdin.origin not in (Origin.TEXT, Origin.NOTHING):
        yield Found(Effect.RUN_UNKNOWN_CODE)
    for text in command.stdin.text.splitlines():
        yield from found_in("vim", text)
        if match := re.match(r"\s*(?::?[%\d,$]*\s*(?:[rw]\s*)?!|shell\s)(.*)", text):
            yield from as_typed(match[1])


def _ex_command(text: str) -> Steps:
    yield from found_in("vim", text)
    yield from found_in("vim_command", text)
    code = CODE.match(text)
    if code is not None:
        reading = read_python(code[2].strip()) if code[1].startswith("py") else read_code(code[2])
        yield from touched(reading, code[2])
    elif match := ESCAPES.search(text):
        yield from as_typed(match[1].strip(" )'\""))


def pager(command: Command) -> Steps:
    """`less +!COMMAND`."""
    for word in command.argv[1:]:
        if word.startswith("+") and "!" in word:
            yield from as_typed(word.partition("!")[2])


TMUX_TAKES = "-S -L -t -c -s -n -x -y -e -F -f -p -l -h -b"
KEYS = pattern(r"^(Enter|C-m|C-j|KPEnter|Space|Escape|C-c|C-d|C-u|C-l|Tab|BSpace)$")


def tmux(command: Command) -> Steps:
    """`tmux new -d COMMAND`, `tmux send-keys TEXT Enter`, `tmux run-shell COMMAND`."""
    first, *rest = command.read(f"{TMUX_TAKES} -d", to_operand=True).operands or ("",)
    operands = read_line(rest, options_in(TMUX_TAKES), to_operand=True).operands
    words = [word for word in operands if not KEYS.match(word)]
    if first not in words_in("signs", "lists", "tmux_runs") or not words:
        return
    for word in words:
        if " " in word and not word.startswith("#"):
            yield Script(_typed(word))
    together = words if " " in words[0] else [quoted(word) if " " in word else word for word in words]
    yield Script(_typed(" ".join(together)))


def screen(command: Command) -> Steps:
    """`screen -dm COMMAND`, `screen -X stuff TEXT`."""
    for word in command.argv[1:]:
        if " " in word:
            yield Script(_typed(word))
    inner = command.read("-S -L -t -c -s -h -p -X -r -x", to_operand=True).operands
    if inner and "-X" not in command.argv:
        yield Started(list(inner))


def _typed(text: str) -> str:
    """Return the typed text, without the keys at its end."""
    return re.sub(r"(\\n|\\r|\\015|\^M|\n|\r)+$", "", text)


# The stream editor

SED_IN_PLACE = pattern(r"^(-[nErsuz]*[iI]).*|^--in-place=.*")
SED_KEEPS = pattern(r"(?:-[nErsuz]*i|--in-place=)(.*/.*)")
SED_BRACKET = r"\[\^?\]?(?:\[(?P<class_{0}>[:.=]).*?(?P=class_{0})\]|[^\]\n])*\]"
SED_PART = (
    r"(?:(?!(?P={0}))(?:\\.|(?=(?P<bracket_{0}>" + SED_BRACKET + r"))(?P=bracket_{0})(?<!\\\])|[^\\\[]))*(?P={0})"
)
"""Up to the delimiter; what the look-ahead found of a bracket is not tried in another way."""
SED_COMMAND = pattern(
    r"[ \t\n;{}]*(?:(?:\d+(?:~\d+)?|\$|[+~]\d+|(?:(?=/)|\\)(?P<a>[^\\\n])"
    + SED_PART.format("a")
    + r"[IM]*)?[ \t]*(?:,[ \t]*)?){2}[! \t]*(?:s(?P<s>[^\\\n])"
    + SED_PART.format("s")
    + r"(?P<new>(?:(?!(?P=s))(?:\\.|[^\\]))*)(?P=s)(?P<flags>[gpiImMe\d \t]*)(?:w(?P<into>[^\n]*)|(?=[;}\n#]|\Z))"
    r"|y(?P<y>[^\\\n])(?:(?:(?!(?P=y))(?:\\.|[^\\]))*(?P=y)){2}"
    r"|(?P<inserts>[aic])(?P<text>(?:[^\\\n]|\\.|\\$)*)|(?P<uses>[rRwWe])(?P<file>[^\n]*)"
    r"|#[^\n]*|[:btTv][^;}\n]*|[lqQL][ \t]*\d*|[=dDFgGhHnNpPxz{}]|(?P<other>.?))",
    re.S,
)
"""A command behind its addresses; `other`: nothing, what sed refuses, or what cannot be read."""


def sed(command: Command) -> Steps:
    """sed: `-i` writes the operands; the script may read and write other files, and start programs."""
    words = [SED_IN_PLACE.sub(lambda match: match[1] or "--in-place", word) for word in command.argv[1:]]
    line = read_line([word for word in words if word], options_in("-e --expression -f --file -l --line-length"))
    scripts = line.value_of("-e", "--expression")
    separate = scripts or line.flags & {"-f", "--file"}
    files = line.operands[0 if separate else 1 :]
    text = "\n".join(scripts) if separate else "".join(line.operands[:1])
    in_place = bool(line.flags & {"-i", "-I", "--in-place"})

    def read(script: str) -> Steps:
        yield from _sed_script(script, files if in_place else ())

    for file in files if in_place else ():
        yield Found(Effect.WRITE, path=file, says="edit {path}")
    for kept in filter(None, map(SED_KEEPS.match, command.argv[1:])):
        yield Found(Effect.WRITE, path=kept[1], says="keep a copy as {path}")
    for file in line.value_of("-f", "--file"):
        yield from run_script([file], command.stdin, read)
    if "--sandbox" not in line.flags:
        yield from read(text)


def _sed_script(script: str, written: tuple[str, ...]) -> Steps:
    """Report the commands of a script with effects beyond its output; `written`: files that get the inserted text."""
    try:
        commands = list(_sed_commands(script))
    except ValueError:
        yield Found(Effect.RISKY_CODE, says="run a sed script that cannot be read")
        return
    for letter, argument in commands:
        if letter == "e":
            yield Found(Effect.RISKY_CODE, says="run a sed script that starts programs")
            yield from (Script(argument),) if argument else ()
        elif letter in "rRwW":
            yield Found(Effect.READ if letter in "rR" else Effect.WRITE, path=argument)
        else:
            yield from (Wrote(file, Flow(Origin.TEXT, argument)) for file in written)


def _sed_commands(script: str) -> Iterator[tuple[str, str]]:
    """Yield the commands that insert text, read, write or start something, with their arguments. Raises ValueError."""
    at = 0
    while at < len(script):
        match = SED_COMMAND.match(script, at)
        assert match is not None  # its last branch matches anything
        at, other, replaces = match.end(), match["other"], match["s"]
        if other is not None and other in f"sy/\\{UNKNOWN}" and other:
            raise ValueError("a command, a pattern or a flag that is not known")
        if other is not None:
            return
        if replaces and "e" in match["flags"]:
            yield "e", match["new"].replace("\\" + replaces, replaces)
        if match["into"] and match["into"].strip():
            yield "w", match["into"].strip()
        if letter := match["inserts"] or match["uses"]:
            text = match["text"] or match["file"] or ""
            yield letter, re.sub(r"\\(.)", r"\1", text.strip().removeprefix("\\\n"), flags=re.S)
