"""B-threads that the command line names: `FILE.py:NAME`, `module:NAME`, a protocol that ships, a file of policies.

Only what a person names is imported; a log never is a reason to run code (see `agent.history.rebuilding`).
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from agent.cli.mistakes import Mistake
from agent.vocabulary.importing import NotImportable, module_at
from bp import BThread, BThreadFunction

__all__ = ["imported", "load_protocols"]


def load_protocols(names: Iterable[str]) -> tuple[BThread, ...]:
    """Return the b-threads that `names` name, in order. Raises Mistake, which says what there is instead."""
    return tuple(bthread for name in names for bthread in _load(name))


def _load(name: str) -> tuple[BThread, ...]:
    if name.endswith((".yaml", ".yml")):
        return _policies(name)
    if name.isidentifier():
        return _shipped(name)
    return _as_bthreads(name, imported(f"--protocol {name!r}", name))


def _policies(file: str) -> tuple[BThread, ...]:
    from agent.protocols.policies.reading import PolicyError, read_policies

    try:
        return read_policies(file)
    except PolicyError as error:
        raise Mistake(str(error)) from error


def _shipped(name: str) -> tuple[BThread, ...]:
    from agent.protocols.catalogue import entry_named

    try:
        return entry_named(name).bthreads()
    except ValueError as error:
        raise Mistake(f"--protocol {name!r}: {error}; your own: FILE.py:NAME") from error


def imported(option: str, name: str, *, what: str = "b-thread", besides: str = "") -> Any:
    """Return what `FILE.py:NAME` or `module:NAME` names. Raises Mistake, which begins with `option`.

    what: what it should be. besides: what else could have been written.
    """
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise Mistake(f"{option} names no {what}; write {besides}FILE.py:NAME or module:NAME")
    module = _module(option, where)
    if not hasattr(module, attribute):
        raise Mistake(f"{option}: {where} has no {attribute!r}; b-threads in it: {_bthreads_in(module)}")
    return getattr(module, attribute)


def _module(option: str, where: str) -> ModuleType:
    try:
        return module_at(where)
    except NotImportable as error:
        raise Mistake(f"{option}: {error}") from error


def _as_bthreads(name: str, value: Any) -> tuple[BThread, ...]:
    if isinstance(value, BThreadFunction):
        try:
            value = value()
        except TypeError as error:
            raise Mistake(f"--protocol {name!r} needs arguments ({error}); name a value that has them") from error
    bthreads = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(bthread, BThread) for bthread in bthreads):
        raise Mistake(f"--protocol {name!r} is {type(value).__name__}; decorate a generator function with @bthread")
    return bthreads


def _bthreads_in(module: ModuleType) -> str:
    kinds = (BThreadFunction, BThread)
    found = [name for name, value in vars(module).items() if isinstance(value, kinds) and not name.startswith("_")]
    return ", ".join(found) or "none"
