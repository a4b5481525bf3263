"""Rules about the form of a command: what cannot be read is never allowed, and nothing is nothing."""

from constitution.effects import Effect
from constitution.rule import Rule
from constitution.verdict import Level

__all__ = ["EMPTY", "FORM"]

EMPTY = Rule(
    "empty_command", "form", Effect.EMPTY, (), Level.deny, match=("", " ", "\n\t"), near_miss=("ls", "# a comment", ":")
)

FORM = (
    EMPTY,
    Rule(
        "unreadable",
        "form",
        Effect.UNREADABLE,
        (),
        Level.ask,
        match=("echo 'a", "if true", "{r'm',-rf,/}", "ls \x07", "cat <<A <<B\na\nA\nb\nB", "time { ls; }"),
        near_miss=("echo 'a'", "if true; then ls; fi", "echo {a,b}", "ls", "cat <<A\nx\nA", "time ls"),
    ),
)
