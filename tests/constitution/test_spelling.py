"""Commands are judged by what they do: another spelling keeps the level or raises it, and a mention stays harmless."""

import base64
import re
import shlex
from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constitution import Level
from tests.constitution.corpora import commands, level
from tests.tables import rows

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
    "through an array": lambda command: f'a=({command}); "${{a[@]}}"',
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


SPELLED = [
    "rm -rf /",
    "rm -r -f /etc/x",
    "chmod -R 777 /",
    "mkfs.ext4 /dev/sda",
    "shutdown now",
    "cat /etc/shadow",
    "git push --force",
    "cp x /usr/bin/y",
    "rm notes.txt ~/x",
    "dd if=a of=/dev/sda",
    "curl https://example.com",
    "kill -9 -1",
    "sudo ls",
]


def first_word(change: Rewrite) -> Rewrite:
    return lambda command: change(command.split(" ")[0]) + command[len(command.split(" ")[0]) :]


REWRITES: dict[str, Rewrite] = {
    "single quotes in the name": first_word(lambda word: word[0] + "''" + word[1:]),
    "double quotes around the name": first_word(lambda word: f'"{word}"'),
    "a quoted letter": first_word(lambda word: f"'{word[0]}'{word[1:]}"),
    "a backslash before the name": lambda command: "\\" + command,
    "a backslash in the name": first_word(lambda word: word[0] + "\\" + word[1:]),
    "hexadecimal letters": first_word(lambda word: "$'" + "".join(f"\\x{ord(letter):02x}" for letter in word) + "'"),
    "octal letters": first_word(lambda word: "$'" + "".join(f"\\{ord(letter):03o}" for letter in word) + "'"),
    "an absolute path": first_word(lambda word: "/usr/bin/" + word),
    "a variable": first_word(lambda word: f"x={word}; $x"),
    "a braced variable": first_word(lambda word: f'x={word}; "${{x}}"'),
    "two variables": first_word(lambda word: f"a={word[0]} b={word[1:]}; $a$b"),
    "a substitution": first_word(lambda word: f"$(echo {word})"),
    "backticks": first_word(lambda word: f"`echo {word}`"),
    "env": lambda command: "env A=b " + command,
    "command": lambda command: "command " + command,
    "timeout and nice": lambda command: "timeout -k 5 10 nice -n 5 " + command,
    "exec": lambda command: "exec " + command,
    "time": lambda command: "time " + command,
    "eval of words": lambda command: "eval " + command,
    "after a semicolon": lambda command: "ls; " + command,
    "after a newline": lambda command: "ls\n" + command,
    "after and": lambda command: "true && " + command,
    "after or": lambda command: "false || " + command,
    "in a pipeline": lambda command: f"ls | {command} | cat",
    "in a branch": lambda command: f"if ls; then ls; else {command}; fi",
    "in a case": lambda command: f"case x in a) ls;; *) {command};; esac",
    "negated": lambda command: "! " + command,
    "in a function that nobody calls": lambda command: f"f() {{ {command}; }}",
    "in a quoted substitution": lambda command: f'echo "a $({command}) b"',
    "in a default": lambda command: f"echo ${{x:-$({command})}}",
    "in arithmetic": lambda command: f"echo $((1 + $({command})))",
    "in a process substitution": lambda command: f"cat <({command})",
    "in a here-document's text": lambda command: f"cat <<END\n$({command})\nEND",
    "in backticks of a here-document": lambda command: f"cat <<END\n`{command}`\nEND",
    "with a continued line": lambda command: command.replace(" ", " \\\n", 1),
    "with a word that is continued": lambda command: command[0] + "\\\n" + command[1:],
    "with a redirection": lambda command: f"{command} > /dev/null 2>&1",
    "with a redirection in front": lambda command: f"2>/dev/null {command}",
    "with a comment": lambda command: f"{command} # harmless",
    "with tabs": lambda command: command.replace(" ", "\t"),
    "with an assignment in front": lambda command: "A=b " + command,
    "through xargs": lambda command: f"echo {command.rpartition(' ')[2]} | xargs {command.rpartition(' ')[0]}",
    "through find": lambda command: f"find . -maxdepth 0 -exec {command} \\;",
}

MENTIONS: dict[str, Rewrite] = {
    "echo": lambda command: "echo " + quoted(command),
    "grep": lambda command: f"grep -rn {quoted(command)} .",
    "a commit message": lambda command: "git commit -m " + quoted(command),
    "a file's text": lambda command: f"cat > notes.md <<'END'\n{command}\nEND",
    "a comment": lambda command: f"ls # {command}",
    "a test": lambda command: f'[ "$x" = {quoted(command)} ] && echo same',
    "a variable": lambda command: f"NOTE={quoted(command)}",
    "printf": lambda command: f"printf '%s\\n' {quoted(command)} >> log.txt",
    "python text": lambda command: f"python3 -c {quoted(f'print({command!r})')}",
    "a search in the log": lambda command: f"git log --grep={quoted(command)}",
}


@rows(("how", "rewrite"), (REWRITES | WRAPPED).items())
def test_another_spelling_keeps_the_level_or_raises_it(how: str, rewrite: Rewrite) -> None:
    assert all(level(command) > Level.allow for command in SPELLED)

    assert [command for command in SPELLED if level(rewrite(command)) < level(command)] == []


@rows(("how", "mention"), MENTIONS.items())
def test_a_mention_of_danger_is_not_danger(how: str, mention: Rewrite) -> None:
    assert [command for command in map(mention, SPELLED) if level(command) is not Level.allow] == []


@rows("wrap", ["echo", "a commit message", "grep", "a file's text"])
def test_mentions_of_the_whole_corpus_are_allowed(wrap: str) -> None:
    dangerous = [command for command in commands("dangerous") if "END" not in command and "\\\n" not in command]

    flagged = [command for command in dangerous if level(MENTIONS[wrap](command)) is not Level.allow]

    assert flagged == []


# Every command of the corpora, spelled in other ways: a dangerous one stays gated, a harmless one stays allowed


DANGEROUS = [command for command in commands("dangerous") if level(command) > Level.allow]
SIMPLE = [command.split() for command in DANGEROUS if re.fullmatch(r"[\w./:+@,-]+ [\w./ :=+@,-]+", command)]


@cache
def everyday() -> list[str]:
    allowed = commands("harmless")
    plain = [command for command in allowed if not re.search(r"\$!|\$0|%1|alias|\$@", command)]
    return [command for command in plain if level(command) is Level.allow]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRAPPED, *HIDDEN])
def test_a_dangerous_command_stays_gated(name: str) -> None:
    rewrite = {**WRAPPED, **HIDDEN}[name]

    tried = DANGEROUS[:: 1 if name in ("sh -c", "a file") else 7]
    if name == "find":  # which puts names into scripts, too
        tried = [command for command in tried if "{}" not in command]
    missed = [command for command in tried if level(rewrite(command)) is Level.allow]

    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPED)
def test_an_everyday_command_stays_allowed(name: str) -> None:
    tried = everyday()[:: 1 if name in ("sh -c", "a file") else 7]
    if name == "find":  # which puts names into scripts, too
        tried = [command for command in tried if "{}" not in command]

    flagged = [command for command in tried if level(WRAPPED[name](command)) is not Level.allow]

    assert flagged == []


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SIMPLE), st.integers(0, 2**32))
def test_a_simple_command_stays_gated_however_its_words_are_quoted(words: list[str], seed: int) -> None:
    written = requoted(words, Random(seed))

    assert level(written) > Level.allow, written
