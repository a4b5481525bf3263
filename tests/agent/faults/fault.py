"""A planted fault, and whether the checker found it: a text in the source of a b-thread, and what it breaks."""

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest.mock import patch

from attrs import frozen

from agent.verification.counterexample import tell
from agent.vocabulary import events, questions
from bp import Verification, Violation


@frozen
class Fault:
    """A b-thread in whose source one text is replaced, what the checker says of it, and the b-threads beside it.

    within: the module of the text, where that is not the b-thread's own.
    """

    name: str
    bthread: str
    right: str
    wrong: str
    culprit: str  # the invariant that breaks; at a deadlock, who requests in vain
    kind: str = "error"
    beside: tuple[Any, ...] = ()
    within: str = ""

    def planted(self, module: str) -> ModuleType:
        """Return the module of the b-thread with the fault in it."""
        wrong = _module(self.within or module, self.right, self.wrong)
        if not self.within:
            return wrong
        with patch.dict(sys.modules, {self.within: wrong}):
            return _module(module)

    def planted_as(self, bthread: Any) -> Any:
        """Return the b-thread with the fault in it, with the same arguments."""
        return getattr(self.planted(bthread.function.__module__), self.bthread)(*bthread.args, **bthread.kwargs)

    def is_told_by(self, violation: Violation) -> bool:
        """Whether a violation names the culprit."""
        is_deadlock = violation.kind == "deadlock"
        culprits = {wish[0] for wish in violation.blockers} if is_deadlock else {violation.bthread}
        return violation.kind == self.kind and self.culprit in culprits


def _module(name: str, right: str = "", wrong: str = "") -> ModuleType:
    """Return a module made once more, with one text of its source replaced; all events are known there."""
    source = inspect.getsource(import_module(name))
    assert not right or source.count(right) == 1, f"{name} does not have once: {right}"
    made = ModuleType(name)
    made.__dict__.update({**vars(events), **vars(questions), "__name__": name})
    exec(compile(source.replace(right, wrong) if right else source, name, "exec"), made.__dict__)
    return made


def is_found(fault: Fault, result: Verification) -> bool:
    """Whether one of the violations names the culprit, and each can be read at a glance."""
    assert all(len(tell(violation).splitlines()) <= 15 for violation in result.violations)
    return any(map(fault.is_told_by, result.violations))


def told(result: Verification) -> str:
    """Return all violations as stories."""
    return "\n\n".join(map(tell, result.violations)) or str(result)
