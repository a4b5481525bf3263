"""Laws of the constitution: total, bounded, monotonic; a row of the table can only lose safety and win peace."""

import sys
import time
from itertools import product

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
    Policy,
    Rule,
    classify_risk,
    denials,
    effects_of,
    judge,
    judge_command,
    programs,
)
from constitution.places import Place, most_sensitive, places
from constitution.rules import NEVER, effect_rules, group
from tests.constitution.corpora import commands
from tests.tables import rows

WORDS = r"""
' " ` $( ) ${ } { (( )) <<A | & ; $x ~ if then fi do done case esac f() <( > a= [[ ]] * ? echo eval xargs é time
coproc ! function - -- = find -exec awk sed kill git -C curl -d cd \ for in while read /../ ~/.ssh .env
"""
PARTS = [
    *WORDS.split(),
    *("rm -rf /", "\nA\n", "\n", "for i in", "sh -c", "\0", "\x01", "\ud800", "\u202e", "$'\\x", "python -c"),
]
TEXT = (
    st.text(max_size=60)
    | st.lists(st.sampled_from(PARTS), max_size=25).map(" ".join)
    | st.lists(st.sampled_from(PARTS), max_size=25).map("".join)
)
NUMBERS = st.integers(0, 6)
PLACES = st.builds(Place, st.just("any"), NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS)


def action(command: str, *, sandbox: str = "") -> Action:
    return Action("bash", "write", "/ws", home="/home/me", command=command, sandbox=sandbox)


def level(effect: Effect, policy: Policy, *, confined: bool) -> Level:
    levels = (rule.level(effect, confined=confined) for rule in policy.rules_for(effect.kind))
    return max(levels, default=Level.allow)


@rows("policy", POLICIES.values())
def test_a_more_sensitive_place_is_never_judged_milder(policy: Policy) -> None:
    known = places().values()
    pairs = [
        (less.name, more.name)
        for less, more in product(known, repeat=2)
        if all(one <= other for one, other in zip(less.numbers, more.numbers, strict=True))
    ]
    for kind, confined in product(effect_rules(), (False, True)):
        said = {place.name: level(Effect(kind, "/x", place), policy, confined=confined) for place in known}
        assert [(kind, confined, less, more) for less, more in pairs if said[less] > said[more]] == []


@settings(max_examples=200, deadline=None)
@given(PLACES, PLACES, st.sampled_from([*effect_rules()]), st.sampled_from([*POLICIES.values()]), st.booleans())
def test_of_two_places_the_more_sensitive_is_never_judged_milder(
    one: Place, other: Place, kind: str, policy: Policy, confined: bool
) -> None:
    both = most_sensitive(one, other)

    for place in (one, other):
        milder = level(Effect(kind, "/x", place), policy, confined=confined)
        assert milder <= level(Effect(kind, "/x", both), policy, confined=confined)


@rows("policy", POLICIES.values())
def test_a_sandbox_never_makes_a_rule_stricter(policy: Policy) -> None:
    for kind, place in product(effect_rules(), places().values()):
        effect = Effect(kind, "/x", place)
        assert level(effect, policy, confined=True) <= level(effect, policy, confined=False), effect


def test_the_denials_in_a_sandbox_are_few() -> None:
    assert 10 <= len(denials()) <= 15
    assert all(rule.deny < NEVER for rule in denials())


@pytest.mark.slow
def test_without_a_table_everything_dangerous_is_gated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_rows", dict)
    monkeypatch.setattr(sys.modules["constitution.judge"], "special_programs", dict)

    assert [one for one in commands("dangerous") if judge(action(one)).level is Level.allow] == []


@rows("line", ["cat: read operands", "git log|log: text", "tac|tac: text"])
def test_a_program_that_comes_twice_is_refused(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "table", lambda _: {"rows": {"one": "cat: text", "two": line}})

    with pytest.raises(ValueError, match=r"comes twice"):
        assert programs._rows.__wrapped__() == {}
    monkeypatch.undo()


def test_every_clause_names_an_effect_that_has_a_rule() -> None:
    kinds = {clause.effect for _, row in programs.all_rows() for clause in row.clauses}

    assert kinds - set(effect_rules()) - programs.NO_EFFECTS == set()
    for name in ("doubts", "ambiguous", "looks", "undoable"):
        assert group(name) <= set(effect_rules())


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_any_text_gets_a_verdict_and_the_same_one_twice(text: str) -> None:
    first = judge(action(text))

    assert first == judge_command(text, "/ws", home="/home/me")
    assert first.explanation
    assert judge(action(text, sandbox="bubblewrap")).level <= first.level
    hash(first)


@settings(max_examples=60, deadline=None)
@given(TEXT, st.sampled_from([*effect_rules()]), st.integers(0, 9), st.integers(0, 9))
def test_a_rule_that_is_added_can_only_raise(text: str, kind: str, ask: int, deny: int) -> None:
    more = DEFAULT.with_rules(Rule("added", "test", (kind,), "worth", ask, deny))

    assert judge_command(text, "/ws", policy=more).level >= judge_command(text, "/ws").level


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=2), TEXT)
def test_any_action_gets_a_verdict(argv: list[str], paths: list[str], workspace: str) -> None:
    uses = tuple(PathUse(path, path, "write") for path in paths)
    described = Action("tool", "write", workspace, argv=tuple(argv), paths=uses)

    assert all(judge(described, policy).level in Level for policy in POLICIES.values())
    assert classify_risk(described) in ("read_only", "side_effects", "high_ambiguity")


HOSTILE = {
    "commands": "a;" * 8_000,
    "stages": "a|" * 8_000 + "a",
    "parentheses": "(" * 16_000,
    "substitutions": "$(" * 8_000,
    "backticks": "`" * 16_000,
    "words in backticks": "echo " + "`a` `b` " * 1_900,
    "braces": "echo " + "{a,b}" * 3_000,
    "nested braces": "echo " + "{a," * 4_000 + "}" * 4_000,
    "stars": "rm " + "*a" * 8_000,
    "folders of stars": "rm " + "/*" * 8_000,
    "values": "a=$a$a;" * 2_000,
    "defaults": "echo " + "${a:-" * 3_000,
    "loops": "for a in 1 2 3 4; do " * 50 + "rm $a" + "; done" * 50,
    "folders": "cd a; " * 2_700,
    "other folders": "cd a || " * 2_000 + "x",
    "branches": "if a; then cd b; else cd c; fi;" * 500,
    "here-documents": "cat <<E\nE\n" * 1_600,
    "wrappers": "env " * 4_000,
    "scripts": "sh -c " * 2_600,
    "evaluations": "X='" + "<>|" * 1_300 + "'; " + 'eval "$X"; ' * 1_000,
    "functions": "f(){ f; };" * 1_500,
    "aliases": "alias a=b;a;" * 1_300,
    "operands": "rm " + "a/b " * 4_000,
    "options": "git " + "-c a=b " * 2_300 + "status",
    "actions of find": "find . " + "-exec a {} + " * 1_200,
    "files that run each other": "cat > x <<'E'\n" + "sh x\n" * 3_000 + "E\nsh x",
    "sed": "sed '" + "s/a/b/;" * 2_300 + "'",
    "spaces in sed": "sed '" + ";" + " " * 15_000 + "'",
    "awk": "awk '" + 'print > "a";' * 1_300 + "'",
    "python": "python -c '" + "(" * 9_000 + "'",
    "minus in python": "python -c '" + "-" * 9_000 + "1'",
    "perl": "perl -e '" + "s/a/" * 4_000 + "'",
    "javascript": "node -e 'exec(" + '"a" ' * 3_800 + "'",
    "spaces in javascript": "node -e 'exec" + " " * 15_000 + "'",
    "a million letters": "x" * 1_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_of_16_kb_is_judged_within_half_a_second(name: str) -> None:
    judge_command("ls", "/ws")  # the tables are read with the first command
    start = time.process_time()

    judge_command(HOSTILE[name][:1_000_000], "/ws", home="/home/me")

    assert time.process_time() - start < 0.5


@rows("text", ["x" * 20_000, "echo 'a", "(" * 200, "ls \x00", "echo \ud800", "$(" * 100, "{rm,-rf,/}", "((ls)"])
def test_a_command_that_cannot_be_read_is_never_allowed(text: str) -> None:
    for name in ("default", "workspace", "approval_list", "gated"):
        assert judge_command(text, "/ws", policy=POLICIES[name]).level > Level.allow


def test_deep_nesting_does_not_hide_a_command() -> None:
    command = "rm -rf /"
    for _ in range(41):
        command = f"( {command} )"

    assert judge_command(command, "/ws").level > Level.allow


def test_nothing_but_computing_happens_when_a_command_is_judged() -> None:
    assert effects_of(action("cat x")) == effects_of(action("cat x"))
