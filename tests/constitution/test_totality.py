"""Judging never raises, always ends, and gives the same answer twice; what cannot be read is never allowed."""

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constitution import (
    DEFAULT,
    POLICIES,
    Action,
    Effect,
    Level,
    PathUse,
    Rule,
    classify_risk,
    judge,
    judge_command,
    mentions,
)
from tests.tables import rows

WORDS = r"""
' " ` $( ) ${ } { (( )) <<A | & ; $x ~ if then fi do done case
esac f() <( > a= [[ ]] * echo eval xargs é time coproc ! function - -- = find -exec awk
"""
PARTS = [
    *WORDS.split(),
    "rm -rf /",
    "\nA\n",
    "\n",
    "\\",
    "for i in",
    "sh -c",
    "\0",
    "\ud800",
    "\u202e",
    "$'\\x",
    "python -c",
]
SHELLISH = st.lists(st.sampled_from(PARTS), max_size=25).map(" ".join) | st.lists(
    st.sampled_from(PARTS), max_size=25
).map("".join)
TEXT = st.text(max_size=60) | SHELLISH


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(TEXT)
def test_any_text_gets_a_verdict_and_the_same_one_twice(text: str) -> None:
    first = judge_command(text, "/ws", home="/home/me")

    assert first == judge_command(text, "/ws", home="/home/me")
    assert first.explanation
    hash(first)
    mentions(text)


@pytest.mark.slow
def test_wide_characters_never_reach_the_parser() -> None:
    """The parser's scanner dies of some of them, depending on how memory lies; so it gets to see letters instead."""
    script = (
        "import random; from constitution import judge_command; r = random.Random(1)\n"
        "parts = ['${', '}', '$', '<<', '<<-', 'A', '\\n', '=~', '[[', ' ', '#', '{', chr(0x2f065), chr(0xe5a67)]\n"
        "for _ in range(3000): judge_command(''.join(r.choices(parts, k=12)), '/ws')"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(TEXT, st.sampled_from(list(Effect)), st.sampled_from(list(Level)))
def test_a_rule_that_is_added_can_only_raise(text: str, effect: Effect, level: Level) -> None:
    more = DEFAULT.with_rules(Rule("added", "test", effect, (), level))

    assert judge_command(text, "/ws", policy=more).level >= judge_command(text, "/ws").level


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=2), TEXT)
def test_any_action_gets_a_verdict(argv: list[str], paths: list[str], workspace: str) -> None:
    uses = tuple(PathUse(path, path, "write") for path in paths)
    action = Action("tool", "write", workspace, argv=tuple(argv), paths=uses)

    assert all(judge(action, policy).level in Level for policy in POLICIES.values())
    assert classify_risk(action) in ("read_only", "side_effects", "high_ambiguity")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000,
        "$(" * 4_000,
        "`" * 5_001,
        '"$(' * 3_000,
        "{ " * 4_000,
        "if a; then " * 1_000,
        "a | " * 3_000 + "b",
        "a && " * 3_000 + "b",
        "! " * 5_000 + "a",
        "((" * 3_000,
        "${a:-" * 3_000,
        "<>|" * 4_000,
        "x" * 1_000_000,
        "cat <<A\n" * 2_000,
        "{a,b}" * 3_000,
        "X='" + "<>|" * 1_300 + "'; " + 'eval "$X"; ' * 1_000,
        "sh -c " * 3_000,
        "env " * 3_000 + "rm -rf /",
        "eval " * 3_000 + "x",
        "f() { f; }; " * 500 + "f",
        "a=$a$a;" * 2_000,
        "for i in 1 2 3 4 5 6 7 8; do " * 50 + "rm $i" + "; done" * 50,
        "python -c '" + "(" * 9_000 + "'",
        "python -c '" + "-" * 9_000 + "1'",
        "cat <<" + "A" * 3_000 + "\nx\n" + "A" * 3_000,
        "a=({1..9999}); rm ${a[@]}",
        "echo {1..9999}{1..9999}",
        "echo " + "{a," * 4_000 + "}" * 4_000,
        "x=" + "a" * 4_000 + "; echo " + "${x##*a*a*a*b}" * 300,
        "".join(f"echo 'sh x{i + 1}; sh x{i + 1}' > x{i}; " for i in range(40)) + "sh x0",
        "cat > x <<'E'\n" + "sh x\n" * 3_000 + "E\nsh x",
        "sed '" + "s/a/b/;" * 2_000 + "'",
        "sed '" + ";" + " " * 15_000 + "'",
        "node -e 'exec" + " " * 15_000 + "'",
        "node -e 'exec(" + '"a" ' * 3_800 + "'",
        "node -e '" + "open " * 3_200 + "'",
        "make -f - <<< '" + "$(shell " * 1_800 + "'",
        "echo " + "`a` `b` " * 1_500,
        "while a; do x=$x$y; " * 20 + "z; " + "done; " * 20,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_text_is_judged_in_bounded_time(text: str) -> None:
    start = time.process_time()

    judge_command(text, "/ws", home="/home/me")

    assert time.process_time() - start < 5


@rows("text", ["x" * 20_000, "echo 'a", "(" * 200, "ls \x00", "echo \ud800", "$(" * 100, "{rm,-rf,/}", "((ls)"])
def test_a_command_that_cannot_be_parsed_is_never_allowed(text: str) -> None:
    for name in ("default", "workspace", "approval_list", "gated"):
        assert judge_command(text, "/ws", policy=POLICIES[name]).level > Level.allow


def test_deep_nesting_does_not_hide_a_command() -> None:
    command = "rm -rf /"
    for _ in range(40):
        command = f"( {command} )"

    assert judge_command(command, "/ws").level > Level.allow


@pytest.mark.slow
def test_judging_leaves_the_parser_alone_until_it_is_needed() -> None:
    """`import constitution` stays fast: the parser is loaded with the first command."""
    script = "import sys, constitution; sys.exit('tree_sitter' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
