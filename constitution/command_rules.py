"""Rules of the user about simple commands, as the shell will run them; a rule that allows is a grant.

A rule that asks or denies applies to a command at any depth: inside wrappers and nested scripts. A *grant* is narrower.
It applies to a command as written in the call itself, started from the one file it is bound to; it lowers an ask, never
a deny, a doubt about what would run, or the effects of redirections and variables.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable

from attrs import field, frozen

from constitution import programs
from constitution.action import Action
from constitution.verdict import Level


def _tuple(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(words)


def _some_words(rule: object, attribute: object, argv: tuple[str, ...]) -> None:
    if not argv or not all(isinstance(word, str) for word in argv) or not argv[0]:
        raise ValueError("a rule about a command needs the words that the command begins with")
    if cure := cure_for(argv):
        raise ValueError(f"a rule for {' '.join(argv)!r} could never match: {cure}")


def cure_for(argv: tuple[str, ...]) -> str:
    """Return what is wrong with the words of a rule that can never match; empty if it can."""
    if re.fullmatch(r"\w+\(.*", argv[0]):
        inner = " ".join(argv).partition("(")[2].rstrip(")").removesuffix(":*").removesuffix("*")
        return f"leave out the name of the tool; write {inner.strip()!r}"
    if {"&&", "||", ";", "|", "&"}.intersection(argv) or any(word.endswith(";") for word in argv[:-1]):
        return "it is about one simple command, wherever it stands; write a rule for each"
    if argv[-1].endswith("*") and (argv[-1] == "*" or argv[-1].endswith(":*")):
        words = [*argv[:-1], argv[-1].removesuffix("*").removesuffix(":")]
        return f"anything may follow its words; write {' '.join(filter(None, words))!r}"
    if re.match(r"[A-Za-z_]\w*=", argv[0]):
        return f"variables are no words of a command; write {' '.join(argv[1:])!r}"
    return ""


def _bound_when_it_allows(rule: "CommandRule", attribute: object, executable: str | None) -> None:
    if rule.level is Level.allow and not (executable or "").startswith("/"):
        words = " ".join(rule.argv)
        form = f"allow file=/usr/bin/{rule.argv[0]} -- {words}"
        raise ValueError(f"a rule that allows {words!r} must name the file that it starts, absolute: {form}")


@frozen
class CommandRule:
    """The words that a command begins with, and a level. `executable`: the file that a grant is bound to, absolute.

    `content`: the content of the files that the command runs, to which a grant is bound, too (`Action.content`).

    `exact`: the words are the whole command. `rule`: the rule of the policy whose asks a grant lowers; None: of all
    rules. `match` and `not_match`: commands that the rule does and does not concern; `flaws_of` checks them. Raises
    ValueError for no words, for words that no command begins with, and for a grant without a file.
    """

    level: Level
    argv: tuple[str, ...] = field(converter=_tuple, validator=_some_words)
    executable: str | None = field(default=None, validator=_bound_when_it_allows)
    reason: str = ""
    rule: str | None = None
    exact: bool = False
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    content: str = ""

    def begins(self, argv: tuple[str, ...]) -> bool:
        """Return whether a command begins with the words of this rule, or equals them if the rule is exact."""
        return argv == self.argv if self.exact else argv[: len(self.argv)] == self.argv

    def concerns(self, argv: tuple[str, ...]) -> bool:
        """Return whether a command is the program of this rule, by any path, with its words and any options between.

        Options are a set: `rm -rf` is `rm --force -r`. After an option one more word is skipped, which may be its
        value: `git -C . push` is `git push`. A file that runs is the same however it is started: `./x`, `sh x`.
        """
        if self.exact or not argv:
            return self.begins(argv)
        mine, other = plain(self.argv), plain(argv)
        if mine[0] != other[0] or not options_of(mine) <= options_of(other):
            return False
        return _in_order([word for word in mine[1:] if not word.startswith("-")], other[1:])

    def grants(self, argv: tuple[str, ...], action: Action) -> bool:
        """Return whether this is a grant for a command that starts the bound file, with unchanged content."""
        return self._names(argv, action) and self.content in ("", action.content)

    def is_outdated(self, argv: tuple[str, ...], action: Action) -> bool:
        """Return whether this would be a grant for a command, but the files that it runs have changed since."""
        return self._names(argv, action) and not self.grants(argv, action)

    def _names(self, argv: tuple[str, ...], action: Action) -> bool:
        is_its_file = action.executables.get(argv[0]) == self.executable
        return self.level is Level.allow and self.begins(argv) and is_its_file

    def __str__(self) -> str:
        """Return the rule in one line, which `read_command_rule` reads; its examples are not in it."""
        exact = "yes" if self.exact else ""
        bound = {"file": self.executable, "content": self.content}
        named = {**bound, "rule": self.rule, "exact": exact, "reason": self.reason}
        facts = (f"{name}={value}" for name, value in named.items() if value)
        return shlex.join([self.level.value, *facts, "--", *self.argv])


def plain(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command in the form in which rules compare it: `./x`, `sh x` and `source x` are `./x`."""
    word, *others = argv
    if word in programs.words("starts_files") and others and not others[0].startswith("-"):
        word, *others = f"./{others[0]}" if "/" not in others[0] else others[0], *others[1:]
    if "/" not in word or word.startswith(programs.PROGRAM_FOLDERS):
        return programs.program_name(word), *others
    return f"./{posixpath.normpath(word)}" if word[0] != "/" else word, *others


def options_of(argv: tuple[str, ...]) -> frozenset[str]:
    """Return the options of a command, each under the first of its names."""
    same = programs.synonyms(argv[0])
    words = [word for word in argv[1:] if word.startswith("-") and word not in ("-", "--")]
    return frozenset(same.get(option, option) for word in words for option in _split(word, argv[0]))


def _split(word: str, program: str) -> list[str]:
    is_cluster = re.fullmatch(r"-[A-Za-z]{2,}", word) and not programs.has_one_dash(program)
    return [f"-{letter}" for letter in word[1:]] if is_cluster else [word]


def _in_order(words: list[str], argv: tuple[str, ...]) -> bool:
    """Return whether words follow each other in a command, with only options and their values between."""
    before = ""
    for word in argv:
        if not words:
            break
        if word == words[0]:
            words = words[1:]
        elif not word.startswith("-") and not before.startswith("-"):
            return False
        before = word
    return not words


def read_command_rule(line: str) -> CommandRule:
    """Parse a rule about a command: `deny 'reason=not on Fridays' -- make deploy`.

    Before the words are the level and the conditions: `file=`, `content=`, `rule=`, `exact=yes`, `reason=`. Raises
    ValueError.
    """
    level, *words = shlex.split(line) or [""]
    if level not in {known.value for known in Level} or "--" not in words:
        raise ValueError(f"{line!r}: a rule about a command reads `allow|ask|deny [file=PATH] [rule=NAME] -- WORDS`")
    end = words.index("--")
    facts = dict(word.partition("=")[::2] for word in words[:end])
    if unknown := facts.keys() - {"file", "content", "rule", "reason", "exact"}:
        known = "known are file=, content=, rule=, exact=, reason="
        raise ValueError(f"{line!r}: there is no {sorted(unknown)[0]!r} here; {known}")
    if facts.get("exact", "yes") != "yes":
        raise ValueError(f"{line!r}: exact= can only be yes")
    return CommandRule(
        Level(level),
        tuple(words[end + 1 :]),
        facts.get("file"),
        facts.get("reason", ""),
        facts.get("rule"),
        exact="exact" in facts,
        content=facts.get("content", ""),
    )
