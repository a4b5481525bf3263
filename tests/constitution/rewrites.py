"""Other spellings of whole commands, and of the words of simple ones, that mean the same to a shell."""

import base64
import shlex
from collections.abc import Callable
from random import Random

Rewrite = Callable[[str], str]


def quoted(command: str) -> str:
    return shlex.quote(command)


def ansi(text: str) -> str:
    """A text as `$'...'`, every character that is not plain by its number."""
    return "$'" + "".join(c if c.isalnum() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text) + "'"


def block(text: str) -> str:
    """A command as the content of a block: here-documents need the end of their line."""
    return f"\n{text}\n"


WRAPPED: dict[str, Rewrite] = {
    "sh -c": lambda command: f"sh -c {quoted(command)}",
    "bash -lc": lambda command: f"bash -lc {quoted(command)}",
    "sh -c within bash -c": lambda command: f"bash -c {quoted('sh -c ' + quoted(command))}",
    "sh -c with numbers": lambda command: f"sh -c {ansi(command)}",
    "eval": lambda command: f"eval {quoted(command)}",
    "a variable and eval": lambda command: f'c={quoted(command)}; eval "$c"',
    "a variable and sh -c": lambda command: f'c={quoted(command)}; bash -c "$c"',
    "a subshell": lambda command: f"({block(command)})",
    "braces": lambda command: f"{{ {block(command)}}}",
    "a function": lambda command: f"f() {{ {block(command)}}}; f",
    "after a line": lambda command: f"cd .\n{command}",
    "after set": lambda command: f"set -e; true && {{ {block(command)}}}",
    "a condition": lambda command: f"if true; then {block(command)}fi",
    "timeout": lambda command: f"timeout -k 1 60 sh -c {quoted(command)}",
    "env": lambda command: f"env A=b sh -c {quoted(command)}",
    "nice and time": lambda command: f"time nice -n 5 bash -c {quoted(command)}",
    "find": lambda command: f"find . -maxdepth 0 -exec sh -c {quoted(command)} \\;",
    "a here-document": lambda command: f"sh <<'THE_END'\n{command}\nTHE_END",
    "a here-document into a pipe": lambda command: f"cat <<'THE_END' | bash\n{command}\nTHE_END",
    "a here-string": lambda command: f"bash <<< {quoted(command)}",
    "a pipe": lambda command: f"printf '%s\\n' {quoted(command)} | sh",
    "a process substitution": lambda command: f"bash <(printf '%s\\n' {quoted(command)})",
    "a file": lambda command: f"cat > run.sh <<'THE_END'\n{command}\nTHE_END\nchmod +x run.sh && ./run.sh",
    "a trap": lambda command: f"trap {quoted(command)} EXIT",
}
"""These hold for harmless commands as well."""

HIDDEN: dict[str, Rewrite] = {
    "base64": lambda command: f"echo {base64.b64encode(command.encode()).decode()} | base64 -d | sh",
    "base64 in a substitution": lambda command: (
        f'eval "$(base64 -d <<< {base64.b64encode(command.encode()).decode()})"'
    ),
    "lines that are read": lambda command: (
        f"while read -r line; do eval \"$line\"; done <<'THE_END'\n{command}\nTHE_END"
    ),
    "xargs": lambda command: f"printf '%s\\0' {quoted(command)} | xargs -0 -I{{}} sh -c {{}}",
    "an alias": lambda command: f"alias x={quoted(command)}; x",
    "the background": lambda command: f"nohup sh -c {quoted(command)} > /dev/null 2>&1 &",
    "a substitution": lambda command: f"echo $({block(command)})",
    "a loop": lambda command: f"for i in 1 2; do {block(command)}done",
    "python": lambda command: "python3 -c " + quoted(f"import os; os.system({command!r})"),
    "a makefile": lambda command: f"make --eval={quoted('all:; sh -c ' + quoted(command).replace('$', '$$'))}",
}
"""These hide what runs, or do it in a way that is itself worth a question."""


def requoted(words: list[str], random: Random) -> str:
    """The words of a simple command, each quoted in one of the ways that there are."""
    ways: list[Rewrite] = [
        lambda word: word,
        lambda word: f"'{word}'",
        lambda word: f'"{word}"',
        lambda word: "\\".join(["", *word]),
        lambda word: ansi(word),
        lambda word: word[:1] + "''" + word[1:],
        lambda word: f"'{word[:1]}'\"{word[1:]}\"",
        lambda word: word[:1] + "\\\n" + word[1:],
        lambda word: f"$(printf %s {word})",
        lambda word: f"`printf %s {word}`",
        lambda word: f"${{unset_{random.randrange(9)}:-{word}}}",
    ]
    blanks = [" ", "  ", "\t", " \\\n ", "${IFS}"]
    text = random.choice(ways)(words[0])
    for word in words[1:]:
        text += random.choice(blanks) + random.choice(ways)(word)
    return text
