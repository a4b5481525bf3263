"""The small changes of a module that a test should notice, made in its syntax tree.

Each is one slip of a programmer: a word of a statement that is missing, a condition turned round, a number off by one,
a wait that is left out, one event in the place of another, a reset that is forgotten, a result that is not returned.
Texts, annotations, imports and decorators stay as they are.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from types import CodeType
from typing import Any

from attrs import evolve, field, frozen

Change = tuple[str, ast.AST | None]
"""What is done, in words, and what stands there instead; None where it can be left out of a list."""

WORDS = {"refuse": {"because"}, "request": {"otherwise"}, "because": None}
"""Words of `sync` that go together; None: never dropped alone, since the statement is invalid without the other."""

OPPOSITES = [(ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)]
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {**dict(OPPOSITES), **{other: one for one, other in OPPOSITES}}
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
PAIRS = {"any": "all", "all": "any", "min": "max", "max": "min"}
DROPPED = ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.For | ast.AsyncFor | ast.Assert | ast.Delete
MEMOIZED = {"cache", "lru_cache", "cached_property"}
LONGEST = 100  # characters of what is told of a change


@frozen
class Mutant:
    """One change: the module, the line, what is done, and the code that is imported instead."""

    path: str
    line: int
    lines: range
    """The lines of its statement: a test that executes one of them may notice."""
    function: str
    change: str
    reaches_every_test: bool
    """It is made where the module is imported, or in a function that keeps its result: any test may notice."""
    compiled: Callable[[], CodeType] = field(repr=False, eq=False)
    """The changed module."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.function or 'module'}: {self.change}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays when lines are added above it."""
        return self.path, self.function, self.change


@frozen
class _Place:
    """Where a node stands: its function, its statement, and whether every test may reach it."""

    function: str = ""
    lines: range = range(0)
    reaches_every_test: bool = True
    top: int = 0
    """The position, in the module, of the statement that it is part of."""
    rebound: frozenset[str] = frozenset()
    """The names of the function that are assigned more than once: to forget one assignment is no NameError."""


def mutants_of(source: str, path: str, place_on_disk: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines; none twice, and none that is the same program."""
    tree = ast.parse(source)
    siblings = _siblings(tree)
    seen = {(top, ast.dump(statement)) for top, statement in enumerate(tree.body)}
    times = Counter[tuple[str, str]]()
    for slot, place in _slots(tree, _Place()):
        for change, instead in _changes(slot, place, siblings):
            with _replaced(slot, instead):
                program = place.top, ast.dump(tree.body[place.top])
            if program not in seen:
                seen.add(program)
                change = change if len(change) <= LONGEST else f"{change[:LONGEST]}..."
                times[place.function, change] += 1
                number = times[place.function, change]
                change = change if number == 1 else f"{change} ({number})"
                compiled = partial(_compiled, tree, slot, instead, place_on_disk)
                line, every = getattr(slot.node, "lineno", 0), place.reaches_every_test
                yield Mutant(path, line, place.lines, place.function, change, every, compiled)


_ONE_AT_A_TIME = Lock()  # threads that compile mutants of one tree


def _compiled(tree: ast.Module, slot: "_Slot", instead: ast.AST | None, place_on_disk: str) -> CodeType:
    with _ONE_AT_A_TIME, _replaced(slot, instead):
        code: CodeType = compile(tree, place_on_disk, "exec", dont_inherit=True)
    return code


@frozen
class _Slot:
    """A place in the tree that holds a node: a field of its parent, or a position in a list."""

    parent: Any
    name: str
    index: int | None
    node: ast.AST


@contextmanager
def _replaced(slot: _Slot, instead: ast.AST | None) -> Iterator[None]:
    """Have another node, or none, in one place of the tree."""
    before = getattr(slot.parent, slot.name)
    if instead is not None:
        ast.fix_missing_locations(ast.copy_location(instead, slot.node))
    after: Any = instead
    if slot.index is not None:
        after = [*before[: slot.index], *([instead] if instead else []), *before[slot.index + 1 :]]
    setattr(slot.parent, slot.name, after)
    try:
        yield
    finally:
        setattr(slot.parent, slot.name, before)


# Where changes are made


def _slots(node: ast.AST, place: _Place) -> Iterator[tuple[_Slot, _Place]]:
    """Yield each statement, expression and word of a call that may change, with what is around it."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom) or _is_type_alias(node):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "ctx", "targets", "target", "op", "ops"):
            continue
        inner = place if name == "args" else _inner(node, place)
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                at = evolve(inner, lines=_lines(child)) if isinstance(child, ast.stmt) else inner
                if isinstance(node, ast.Module):
                    at = evolve(at, top=index or 0)
                if hasattr(child, "lineno"):
                    yield _Slot(node, name, index, child), at
                yield from _slots(child, at)


def _inner(node: ast.AST, place: _Place) -> _Place:
    if isinstance(node, ast.ClassDef):
        return evolve(place, function=f"{place.function}.{node.name}".lstrip("."))
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return place
    keeps = any(MEMOIZED & _names(each) for each in node.decorator_list)
    is_memoized = keeps or (bool(place.rebound) and place.reaches_every_test)
    function = f"{place.function}.{node.name}".lstrip(".")
    rebound = _rebound(node) | {""}
    return evolve(place, function=function, reaches_every_test=is_memoized, rebound=rebound)


def _lines(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, end or 0) + 1)


def _names(node: ast.AST) -> set[str]:
    return {str(getattr(each, "id", getattr(each, "attr", ""))) for each in ast.walk(node)}


def _rebound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    names = [each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)]
    names += [each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return frozenset(name for name in names if names.count(name) > 1)


def _is_type_alias(node: ast.AST) -> bool:
    """Whether a statement names a type: `Groups = tuple[...]`."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript)


def _siblings(tree: ast.Module) -> dict[str, str]:
    """Return for each imported class the one that stands next to it in the same import, and for constants likewise."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in ("typing", "collections.abc"):
            names = [alias.asname or alias.name for alias in node.names]
            for group in ([n for n in names if n.isupper()], [n for n in names if n[0].isupper() and not n.isupper()]):
                found.update(zip(group, [*group[1:], *group[:1]], strict=True) if len(group) > 1 else ())
    return found


# The changes


def _changes(slot: _Slot, place: _Place, siblings: dict[str, str]) -> Iterator[Change]:
    node, parent = slot.node, slot.parent
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, place)
    if isinstance(test := getattr(node, "test", None), ast.expr) and not isinstance(node, ast.Assert):
        yield from _negated(node, test)
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node, siblings)
    elif isinstance(node, ast.keyword) and isinstance(parent, ast.Call):
        yield from _of_keyword(node, parent)


def _of_statement(node: ast.stmt, place: _Place) -> Iterator[Change]:
    text = ast.unparse(node).split("\n")[0]
    if _can_be_dropped(node):
        yield f"drop {text}", ast.Pass()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and place.rebound and _is_reset(node, place.rebound):
        yield f"forget {text}", ast.Pass()
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant):
        yield f"return None, not {text.removeprefix('return ')}", ast.Return(ast.Constant(None))


def _can_be_dropped(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return not node.orelse
    if isinstance(node, ast.Return):
        return node.value is None
    return isinstance(node, DROPPED) and not _narrows(node)


def _narrows(node: ast.stmt) -> bool:
    """Whether an assertion is there for the type checker."""
    return isinstance(node, ast.Assert) and ("isinstance" in _names(node.test) or "None" in ast.unparse(node.test))


def _is_reset(node: ast.Assign | ast.AnnAssign, rebound: frozenset[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    names = {each.id for each in stored if isinstance(each.ctx, ast.Store)}
    return node.value is not None and names <= rebound


def _negated(node: Any, test: ast.expr) -> Iterator[Change]:
    is_turned_itself = isinstance(test, ast.Compare) and len(test.ops) == 1 and not isinstance(test.ops[0], ORDERED)
    if is_turned_itself or isinstance(test, ast.Constant | ast.UnaryOp):
        return
    changed = type(node)(**{**dict(ast.iter_fields(node)), "test": ast.UnaryOp(ast.Not(), test)})
    yield f"negate {ast.unparse(test)}", changed


def _of_call(node: ast.Call) -> Iterator[Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in PAIRS:
        yield f"{PAIRS[name]} for {name}", _call(node, func=ast.Name(PAIRS[name], ast.Load()))
    if name == "where" and len(node.args) > 1:
        yield f"drop {ast.unparse(node.args[1])}", _call(node, args=node.args[:1])
    position = {"where": 0, "isinstance": 1}.get(name, len(node.args))
    if position < len(node.args) and isinstance(kinds := node.args[position], ast.Tuple) and len(kinds.elts) > 1:
        for kind in kinds.elts:
            fewer = ast.Tuple([each for each in kinds.elts if each is not kind], ast.Load())
            args = [fewer if each is kinds else each for each in node.args]
            yield f"drop {ast.unparse(kind)}", _call(node, args=args)


def _of_keyword(node: ast.keyword, call: ast.Call) -> Iterator[Change]:
    """Drop a word of a call; in a synchronization statement with the word that is invalid without it."""
    is_sync = isinstance(call.func, ast.Name) and call.func.id == "sync"
    also = WORDS.get(node.arg or "", set()) if is_sync else set()
    others = [each.arg for each in call.keywords if each is not node]
    if node.arg is not None and also is not None and not also & set(others):
        yield f"drop {ast.unparse(node)}", None


def _call(node: ast.Call, **fields: Any) -> ast.Call:
    return ast.Call(**{**dict(ast.iter_fields(node)), **fields})


def _of_expression(node: ast.expr, siblings: dict[str, str]) -> Iterator[Change]:
    text = ast.unparse(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in siblings:
        yield f"{siblings[node.id]} for {text}", ast.Name(siblings[node.id], ast.Load())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        yield f"{other} for {text}", ast.Constant(other)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
        changed = ast.Compare(node.left, [TURNED[type(node.ops[0])]()], node.comparators)
        yield f"{ast.unparse(changed)}, not {text}", changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield f"{ast.unparse(node.operand)}, not {text}", node.operand
    elif isinstance(node, ast.BoolOp):
        yield from _of_operands(node, text)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd):
        yield f"drop {ast.unparse(node.right)} of {text}", node.left
        yield f"drop {ast.unparse(node.left)} of {text}", node.right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield f"turn the sign in {text}", ast.BinOp(node.left, op, node.right)


def _of_operands(node: ast.BoolOp, text: str) -> Iterator[Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield f"{'or' if isinstance(other, ast.Or) else 'and'} in {text}", ast.BoolOp(other, node.values)
    for value in node.values:
        left = [each for each in node.values if each is not value]
        yield f"drop {ast.unparse(value)} of {text}", left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
