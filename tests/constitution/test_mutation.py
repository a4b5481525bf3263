"""Mutation of the tables: every row, and every part of a row, is taken away or changed; some example must then fail.

`python -m tests.constitution.test_mutation` (`make mutation`) tries all changes and prints those that nothing notices.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import attrs
import pytest

from constitution import DEFAULT, Effect, Level, Rule
from constitution.policy import _rules_for
from constitution.tables import rows as tables
from constitution.tables.rows import Does, Program, Variable, Wrapper, all_variables
from tests.constitution.examples import Example, all_programs, all_wrappers, every_example, of_the_statute

R = TypeVar("R")
T = TypeVar("T", Program, Does, Wrapper)
Instead = tuple[str, str, R | None]
"""What was done, of which kind it is, and the row that stands there now."""


@attrs.frozen
class Mutant:
    """One change: what it is called, its kind, the names that an example must hold to meet it, and how to make it."""

    name: str
    kind: str
    heads: frozenset[str]
    made: Callable[[], AbstractContextManager[None]]


def is_noticed(mutant: Mutant) -> bool:
    """Tell whether an example fails while the change is in place."""
    suspects = _suspects(mutant)
    with mutant.made():
        return any(not example.holds() for example in suspects)


def _suspects(mutant: Mutant) -> list[Example]:
    """Every example that meets the change, those with most words of its name first: one of them fails, mostly."""
    if mutant.heads:
        found = dict.fromkeys(e for head in sorted(mutant.heads) for e in _by_word().get(head, ()))
    else:
        found = dict.fromkeys(of_the_statute())
    hints = _words_in(mutant.name)
    return sorted(found, key=lambda example: -len(hints & _words_of(example)))


def _words_in(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w.+-]+", text))


@cache
def _words_of(example: Example) -> frozenset[str]:
    return _words_in(f"{example.command} {example.said.lstrip('-')}")


@cache
def _by_word() -> dict[str, list[Example]]:
    index: dict[str, list[Example]] = {}
    for example in every_example():
        words = _words_in(example.command)
        for word in words | {word.partition(".")[0] for word in words}:  # a row for `mkfs` speaks of `mkfs.ext4`
            index.setdefault(word, []).append(example)
    return index


def all_mutants() -> Iterator[Mutant]:
    """Every change: of programs, of wrappers, of variables, of rules."""
    for program in all_programs():
        for what, kind, new in _programs_instead(program):
            made = partial(_instead, "_rows", program, new)
            yield Mutant(f"{program.names[0]}: {what}", kind, _heads(program.names), made)
    for wrapper in all_wrappers():
        for what, kind, instead in _wrappers_instead(wrapper):
            made = partial(_instead, "_wrappers", wrapper, instead)
            yield Mutant(f"{wrapper.names[0]}: {what}", kind, _heads(wrapper.names), made)
    for variable in all_variables():
        for what, kind, other in _variables_instead(variable):
            made = partial(_variables, variable, other)
            yield Mutant(f"{variable.names[0]}: {what}", kind, frozenset(variable.names), made)
    for position, rule in enumerate(DEFAULT.rules):
        for what, kind, changed in _rules_instead(rule):
            yield Mutant(
                f"{rule.name}: {what}", kind, frozenset(), partial(_rules, _replaced(DEFAULT.rules, position, changed))
            )


def _heads(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.split()[0] for name in names)


def _replaced(rows: tuple[R, ...], position: int, new: R | None) -> tuple[R, ...]:
    return (*rows[:position], *([] if new is None else [new]), *rows[position + 1 :])


# The changes


def _without(row: T, *fields: str) -> Iterator[tuple[str, str, T]]:
    """A row with one of several options less, each in turn."""
    for field in fields:
        options = getattr(row, field)
        for option in sorted(options):
            fewer = type(options)(other for other in options if other != option) or type(options)(["--no-such-option"])
            yield f"{field} without {option}", f"option of {field}", row._replace(**{field: fewer})


def _emptied(row: T, *fields: str) -> Iterator[tuple[str, T]]:
    """A row without the text, the number or the flag in one of several columns, each in turn."""
    for field in fields:
        if value := getattr(row, field):
            changes: dict[str, Any] = {field: type(value)()}
            yield field, row._replace(**changes)


def _programs_instead(row: Program) -> Iterator[Instead[Program]]:
    if row.does or row.runs:
        yield "no row", "row", None
    for index, does in enumerate(row.does):
        for what, kind, new in _does_instead(does):
            changed = row._replace(does=_replaced(row.does, index, new))
            yield f"{does.effect.name} {does.to or 'at all'} {what}", kind, changed
    for flag, changed in _emptied(row, "long_style"):
        yield f"not {flag}", "flag", changed
    yield from _without(row, "takes", "unless", "runs")


def _does_instead(does: Does) -> Iterator[Instead[Does]]:
    yield "taken away", "effect taken away", None
    yield "changed", "effect changed", does._replace(effect=_another(does.effect))
    for field, changed in _emptied(does, "words", "also", "first", "values", "texts"):
        yield f"with any {field}", "condition taken away", changed
    for flag, changed in _emptied(does, "bare"):
        yield f"not {flag}", "flag", changed
    if does.to and "{path}" not in does.says:
        yield "to nothing", "path taken away", does._replace(to="")
    yield from _without(does, "given", "unless", "besides")


def _another(effect: Effect) -> Effect:
    return Effect.LIST if effect is not Effect.LIST else Effect.KILL


def _wrappers_instead(row: Wrapper) -> Iterator[Instead[Wrapper]]:
    yield "no row", "row", None
    flags = ("joins", "assignments", "by_shell", "instead", "dashes", "loose", "scripts", "inside", "typed", "skip")
    for flag, changed in _emptied(row, *flags):
        yield f"not {flag}", "flag", changed
    if row.effect is not None:
        yield "no effect", "effect taken away", row._replace(effect=None)
    yield from _without(row, "takes", "script", "looks", "only")


def _variables_instead(row: Variable) -> Iterator[Instead[Variable]]:
    yield "no row", "row", None
    if row.values:
        yield "with any value", "condition taken away", row._replace(values="")


def _rules_instead(rule: Rule) -> Iterator[Instead[Rule]]:
    yield "no rule", "row", None
    for level in Level:
        if level not in (rule.level, Level.allow):
            yield f"level {level}", "level changed", attrs.evolve(rule, level=level)
    for effect in rule.effects if len(rule.effects) > 1 else ():
        fewer = tuple(other for other in rule.effects if other is not effect)
        yield f"effects without {effect.name}", "one of effects", attrs.evolve(rule, effects=fewer)
    for zone in rule.zones if len(rule.zones) > 1 else ():
        zones = tuple(other for other in rule.zones if other is not zone)
        yield f"zones without {zone.name}", "one of zones", attrs.evolve(rule, zones=zones)


# Making them


@contextmanager
def _instead(function: str, old: object, new: object) -> Iterator[None]:
    """Have the tables give another row, or none, wherever they would give this one."""
    before = getattr(tables, function)
    changed = () if new is None else (new,)
    setattr(
        tables,
        function,
        cache(lambda name: tuple(r for row in before(name) for r in (changed if row == old else (row,)))),
    )
    tables.own_takes.cache_clear()
    try:
        yield
    finally:
        setattr(tables, function, before)
        tables.own_takes.cache_clear()


@contextmanager
def _variables(old: Variable, new: Variable | None) -> Iterator[None]:
    rows = tables._by_name()
    before = dict(rows)
    for name in old.names:
        del rows[name]
        rows.update({name: new} if new is not None else {})
    try:
        yield
    finally:
        rows.update(before)


@contextmanager
def _rules(rules: tuple[Rule, ...]) -> Iterator[None]:
    before = DEFAULT.rules
    object.__setattr__(DEFAULT, "rules", rules)
    _rules_for.cache_clear()
    try:
        yield
    finally:
        object.__setattr__(DEFAULT, "rules", before)
        _rules_for.cache_clear()


def main() -> None:
    """Try every change; print what nothing notices, and by kind how much is noticed."""
    tried, noticed = dict[str, int](), dict[str, int]()
    for mutant in all_mutants():
        tried[mutant.kind] = tried.get(mutant.kind, 0) + 1
        if is_noticed(mutant):
            noticed[mutant.kind] = noticed.get(mutant.kind, 0) + 1
        else:
            print(f"nothing notices: {mutant.kind}: {mutant.name}")
    for kind, count in sorted(tried.items()):
        print(f"{kind:24} {noticed.get(kind, 0):5} of {count:5}")
    print(f"{'all':24} {sum(noticed.values()):5} of {sum(tried.values()):5}")


# Nothing in the tables is idle: whatever is taken away or changed, an example fails. `make mutation` counts


MANY = frozenset(["row", "effect taken away", "effect changed", "level changed"])
HARDLY_ANY = 0.01


@pytest.mark.slow
@pytest.mark.timeout(300)  # every example is judged several times
def test_a_part_of_the_tables_that_is_taken_away_or_changed_is_noticed() -> None:
    """Some example fails without a row, without or with another of its effects, and at any other level of a rule.

    Of options, conditions, flags and zones, hardly one can go without an example that fails.
    """
    mutants = list(all_mutants())
    idle = [mutant for mutant in mutants if not is_noticed(mutant)]
    finer = [f"{mutant.kind}: {mutant.name}" for mutant in idle if mutant.kind not in MANY]
    tried = sum(mutant.kind not in MANY for mutant in mutants)

    assert [mutant.name for mutant in idle if mutant.kind in MANY] == []
    assert tried > 1000
    assert len(finer) <= HARDLY_ANY * tried, finer


if __name__ == "__main__":
    main()
