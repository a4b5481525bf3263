"""Commands are judged by what they do: another spelling keeps the level or raises it, and a mention stays harmless."""

import shlex
from collections.abc import Callable

import pytest

from constitution import Level, judge_command, mentions
from tests.constitution.corpora import commands

SIMPLE = [
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


def first_word(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda command: change(command.split(" ")[0]) + command[len(command.split(" ")[0]) :]


REWRITES: dict[str, Callable[[str], str]] = {
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
    "nohup in the background": lambda command: f"nohup {command} &",
    "exec": lambda command: "exec " + command,
    "time": lambda command: "time " + command,
    "sh -c": lambda command: "sh -c " + shlex.quote(command),
    "bash -lc within sh -c": lambda command: "sh -c " + shlex.quote("bash -lc " + shlex.quote(command)),
    "eval": lambda command: "eval " + shlex.quote(command),
    "eval of words": lambda command: "eval " + command,
    "a pipe into sh": lambda command: f"echo {shlex.quote(command)} | sh",
    "printf into bash": lambda command: f"printf '%s\\n' {shlex.quote(command)} | bash -s",
    "a here-string": lambda command: "bash <<< " + shlex.quote(command),
    "a here-document": lambda command: f"sh <<'END'\n{command}\nEND",
    "a here-document into a pipe": lambda command: f"cat <<END | sh\n{command}\nEND",
    "a subshell": lambda command: f"({command})",
    "a block": lambda command: f"{{ {command}; }}",
    "after a semicolon": lambda command: "ls; " + command,
    "after a newline": lambda command: "ls\n" + command,
    "after and": lambda command: "true && " + command,
    "after or": lambda command: "false || " + command,
    "in a pipeline": lambda command: f"ls | {command} | cat",
    "in a condition": lambda command: f"if {command}; then ls; fi",
    "in a branch": lambda command: f"if ls; then ls; else {command}; fi",
    "in a loop": lambda command: f"for i in 1 2; do {command}; done",
    "in a case": lambda command: f"case x in a) ls;; *) {command};; esac",
    "negated": lambda command: "! " + command,
    "in a function": lambda command: f"f() {{ {command}; }}; f",
    "in a function that nobody calls": lambda command: f"f() {{ {command}; }}",
    "in an alias": lambda command: f"alias x={shlex.quote(command)}; x",
    "in a trap": lambda command: f"trap {shlex.quote(command)} EXIT",
    "in a substitution": lambda command: f"echo $({command})",
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
    "through an array": lambda command: f'a=({command}); "${{a[@]}}"',
    "in python": lambda command: f"python3 -c {shlex.quote(f'import os; os.system({command!r})')}",
}

MENTIONS: dict[str, Callable[[str], str]] = {
    "echo": lambda command: "echo " + shlex.quote(command),
    "grep": lambda command: f"grep -rn {shlex.quote(command)} .",
    "a commit message": lambda command: "git commit -m " + shlex.quote(command),
    "a file's text": lambda command: f"cat > notes.md <<'END'\n{command}\nEND",
    "a comment": lambda command: f"ls # {command}",
    "a test": lambda command: f'[ "$x" = {shlex.quote(command)} ] && echo same',
    "a variable": lambda command: f"NOTE={shlex.quote(command)}",
    "printf": lambda command: f"printf '%s\\n' {shlex.quote(command)} >> log.txt",
    "python text": lambda command: f"python3 -c {shlex.quote(f'print({command!r})')}",
    "a search in the log": lambda command: f"git log --grep={shlex.quote(command)}",
}


def level(command: str) -> Level:
    return judge_command(command, "/ws", home="/home/me").level


@pytest.mark.parametrize("rewrite", REWRITES)
def test_another_spelling_keeps_the_level_or_raises_it(rewrite: str) -> None:
    assert all(level(command) > Level.allow for command in SIMPLE)

    assert [command for command in SIMPLE if level(REWRITES[rewrite](command)) < level(command)] == []


@pytest.mark.parametrize("mention", MENTIONS)
def test_a_mention_of_danger_is_not_danger(mention: str) -> None:
    mentioned = [MENTIONS[mention](command) for command in SIMPLE]

    assert [command for command in mentioned if level(command) is not Level.allow] == []


@pytest.mark.parametrize("wrap", ["echo", "a commit message", "grep", "a file's text"])
def test_mentions_of_the_whole_corpus_are_allowed(wrap: str) -> None:
    dangerous = [command for command in commands("own", "deny") if "END" not in command and "\\\n" not in command]

    flagged = [command for command in dangerous if level(MENTIONS[wrap](command)) is not Level.allow]

    assert flagged == []


@pytest.mark.parametrize("options", ["-u root", "-R /jail", "--chroot /jail", "-D /tmp", "--chdir /tmp", "-r role"])
def test_the_command_behind_the_options_of_sudo_is_found(options: str) -> None:
    assert "rm" in mentions(f"sudo {options} rm x").programs


@pytest.mark.parametrize(
    ("command", "path"),
    [("rm 'a'\\$", "a$"), ('rm "a"\\$HOME', "a$HOME"), ("rm 'a'\\$'HOME'", "a$HOME"), ("rm a\\$", "a$")],
)
def test_an_escaped_dollar_is_a_dollar_wherever_it_stands(command: str, path: str) -> None:
    assert mentions(command).paths == (path,)
