"""A planted fault, and whether the checker found it: a text in the source of a b-thread, and what it breaks."""

import ast
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from attrs import frozen

from agent.verification.counterexample import tell
from agent.vocabulary import events
from bp import Verification, Violation


@frozen
class Fault:
    """A b-thread in whose source one text is replaced, what the checker says of it, and the b-threads beside it.

    within: the module of the text, where that is not the b-thread's own.
    """

    name: str
    bthread: str
    culprit: str  # the invariant that breaks; at a deadlock, who requests in vain
    right: str
    wrong: str
    kind: str = "error"
    beside: tuple[Any, ...] = ()
    within: str = ""

    def planted(self, module: str) -> dict[str, Any]:
        """Return the functions of the b-thread's module with the fault in one of them."""
        known = vars(import_module(module))
        if not self.within:
            return _again(module, known, self.right, self.wrong)
        right = vars(import_module(self.within))
        wrong = _again(self.within, right, self.right, self.wrong)
        return _again(module, {name: wrong[name] if right.get(name) is it else it for name, it in known.items()})

    def planted_in(self, bthread: Any) -> Any:
        """Return the b-thread with the fault in it, with the same arguments."""
        made = self.planted(bthread.function.__module__)[bthread.function.__name__]
        return made(*bthread.args, **bthread.kwargs)

    def is_told_by(self, violation: Violation) -> bool:
        """Whether a violation names the culprit."""
        is_deadlock = violation.kind == "deadlock"
        culprits = {wish[0] for wish in violation.blockers} if is_deadlock else {violation.bthread}
        return violation.kind == self.kind and self.culprit in culprits


def _again(module: str, known: Mapping[str, Any], right: str = "", wrong: str = "") -> dict[str, Any]:
    """Return what a module knows, with its functions and constants made once more, of a source with one other text."""
    source = inspect.getsource(import_module(module))
    tree = _functions(source.replace(right, wrong) if right else source)
    is_planted = source.count(right) == 1 and ast.dump(tree) != ast.dump(_functions(source))
    assert not right or is_planted, f"no function or constant of {module} has once: {right}"
    names = {**vars(events), **known}
    exec(compile(tree, module, "exec"), names)
    return names


def _functions(source: str) -> ast.Module:
    """Return a module without its imports and classes."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Assign | ast.AnnAssign)]
    return tree


def is_found(fault: Fault, result: Verification) -> bool:
    """Whether one of the violations names the culprit, and each can be read at a glance."""
    assert all(len(tell(violation).splitlines()) <= 15 for violation in result.violations)
    return any(map(fault.is_told_by, result.violations))


def told(result: Verification) -> str:
    """Return all violations as stories."""
    return "\n\n".join(map(tell, result.violations)) or str(result)
