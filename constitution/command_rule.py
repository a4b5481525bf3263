"""What a person said about a command once and for all: an argv prefix, and allow, ask or deny.

A rule that asks or denies concerns a command wherever it stands: behind wrappers, in scripts within scripts. A *grant*
(allow) is narrower. It concerns a command as it is written in the call itself, started from the one file it is bound
to; it lowers an ask, never a deny, never a doubt about what would run, and nothing that a redirection or a variable
adds to the command.
"""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from constitution.effects import Effect
from constitution.verdict import Level

__all__ = ["DOUBTS", "CommandRule", "read_command_rule"]

DOUBTS = frozenset(
    {
        Effect.UNREADABLE,
        Effect.UNKNOWN_COMMAND,
        Effect.RUN_UNKNOWN_CODE,
        Effect.RUN_FETCHED_CODE,
        Effect.EMPTY,
    }
)
"""Findings that say: nobody knows what would run. No grant speaks about that."""


def _tuple(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(words)


def _some_words(rule: object, attribute: object, argv: tuple[str, ...]) -> None:
    if not argv or not all(isinstance(word, str) for word in argv) or not argv[0]:
        raise ValueError("a rule about a command needs the words that the command begins with")


def _bound_when_it_allows(rule: "CommandRule", attribute: object, executable: str | None) -> None:
    if rule.level is Level.allow and not (executable or "").startswith("/"):
        raise ValueError(f"a rule that allows {' '.join(rule.argv)!r} must name the file that it starts, absolute")


@frozen
class CommandRule:
    """One argv prefix and its level. `executable`: the resolved file that a grant is bound to, absolute.

    `exact`: the words are the whole command. `rule`: a grant lowers only what this rule of the policy asks; None:
    whatever is asked. `match` and `not_match` are commands that the rule does and does not concern; `flaws_of` judges
    them. Raises ValueError for no words, and for a grant without a file.
    """

    level: Level
    argv: tuple[str, ...] = field(converter=_tuple, validator=_some_words)
    executable: str | None = field(default=None, validator=_bound_when_it_allows)
    reason: str = ""
    rule: str | None = None
    exact: bool = False
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def begins(self, argv: tuple[str, ...]) -> bool:
        """Tell whether a command begins with the words of this rule, or is them, if the rule is exact."""
        return argv == self.argv if self.exact else argv[: len(self.argv)] == self.argv

    def grants(self, argv: tuple[str, ...], executables: Mapping[str, str]) -> bool:
        """Tell whether this is a grant for a command, started from the file that it is bound to."""
        return self.level is Level.allow and self.begins(argv) and executables.get(argv[0]) == self.executable

    def __str__(self) -> str:
        """Return the rule in one line, which `read_command_rule` reads; its examples are not in it."""
        import shlex  # with the first rule that somebody writes

        exact = "yes" if self.exact else ""
        named = {"file": self.executable, "rule": self.rule, "exact": exact, "reason": self.reason}
        facts = (f"{name}={value}" for name, value in named.items() if value)
        return shlex.join([self.level.value, *facts, "--", *self.argv])


def read_command_rule(line: str) -> CommandRule:
    """Return the rule that a line says: `deny 'reason=not on Fridays' -- make deploy`.

    Before the words of the command stand the level and its conditions: `file=`, `rule=`, `exact=yes`,
    `reason=`. Raises ValueError.
    """
    import shlex

    level, *words = shlex.split(line) or [""]
    if level not in {known.value for known in Level} or "--" not in words:
        raise ValueError(f"{line!r}: a rule about a command reads `allow|ask|deny [file=PATH] [rule=NAME] -- WORDS`")
    end = words.index("--")
    facts = dict(word.partition("=")[::2] for word in words[:end])
    if unknown := facts.keys() - {"file", "rule", "reason", "exact"}:
        known = "known are file=, rule=, exact=, reason="
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
    )
