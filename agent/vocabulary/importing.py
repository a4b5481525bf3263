"""Python objects that the user names: `FILE.py:NAME` or `module:NAME`, and a call of it, `FILE.py:NAME(steps=4)`.

The file is executed, so only names that a user wrote may come here.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, ModuleType
from typing import Any

from attrs import frozen

from agent.vocabulary.errors import meant, nearest


class NotImportable(Exception):
    """A file, a module or a name in it cannot be imported; the message says which and why, in one line."""


@frozen
class Named:
    """A reference as the user wrote it: the file or module, the name in it, and the arguments if it is a call."""

    where: str
    attribute: str
    arguments: Mapping[str, Any] | None = None

    @property
    def short(self) -> str:
        """The name with its arguments, without its file or module."""
        if self.arguments is None:
            return self.attribute
        return f"{self.attribute}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"

    def value(self, what: str, *kinds: type) -> Any:
        """Return the object; with arguments, the function with these bound. Raises NotImportable.

        The function is not called: further arguments may follow. kinds: the types that the message lists when the name
        does not exist, by default functions and classes; what: their plural in the message.
        """
        module = module_at(self.where)
        if not hasattr(module, self.attribute):
            wanted = kinds or (FunctionType, type)
            there = [
                name
                for name, each in vars(module).items()
                if isinstance(each, wanted) and name[0] != "_" and (kinds or each.__module__ == module.__name__)
            ]
            cure = f"{what} in it: {', '.join(there) or 'none'}"
            if close := nearest(self.attribute, there, most=1):
                cure = f"did you mean {close[0]!r}?"
            raise NotImportable(f"{self.where} has no {self.attribute!r}; {cure}")
        found = getattr(module, self.attribute)
        return found if self.arguments is None else self._given(found)

    def _given(self, function: Any) -> Any:
        assert self.arguments is not None
        if not callable(function):
            raise NotImportable(f"{self.attribute!r} in {self.where} is {type(function).__name__}, not a function")
        taken = inspect.signature(function).parameters
        unknown = [name for name in self.arguments if name not in taken]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            raise NotImportable(f"{self.attribute} takes no {unknown[0]!r}; {meant(unknown[0], tuple(taken))}")
        return partial(function, **self.arguments)


def read_name(text: str) -> Named:
    """Return what `FILE.py:NAME`, or `FILE.py:NAME(key=value, ...)` with plain values, names. Raises NotImportable."""
    before, opened, after = text.partition("(")
    where, _, attribute = before.rpartition(":")
    if not where or not attribute.isidentifier():
        raise NotImportable(
            f"{text!r} names nothing; write FILE.py:NAME or module:NAME, with arguments NAME(key=value)"
        )
    return Named(where, attribute, _arguments(opened + after) if opened else None)


def _arguments(text: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f{text}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("these are no keywords")
        return {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise NotImportable(f"{text!r} are no arguments; write (key=value, ...) with plain values") from error


def module_at(where: str) -> ModuleType:
    """Return the module `where`: a path that ends in `.py`, or a module's name. Raises NotImportable.

    A file is run once, and can import the files beside it; it is run again when it or one of them has changed.
    """
    try:
        return _from_file(Path(where)) if where.endswith(".py") else import_module(where)
    except (Exception, SystemExit) as error:  # whatever a foreign file may raise
        raise NotImportable(f"{where} cannot be imported: {_reason(error, where)}") from error


def _from_file(path: Path) -> ModuleType:
    version = _version(path)
    if version is None:
        raise FileNotFoundError(f"there is no such file: {path.absolute()}")
    if any(_version(file) != seen for file, seen in _BESIDE.values()):
        for name in _BESIDE:
            sys.modules.pop(name, None)
        _BESIDE.clear()
        _run_file.cache_clear()
    return _run_file(path.resolve(), version)


_BESIDE: dict[str, tuple[Path, tuple[int, ...] | None]] = {}
"""The modules beside files that were run, with the versions of their files then."""


def _version(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file does; None if there is no file."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)


@lru_cache(maxsize=256)
def _run_file(path: Path, version: tuple[int, ...]) -> ModuleType:
    """Run a file as a module. Its name is that of the file, so that logs do not depend on the folder."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that no file beside it replaces a module of Python
    spec = spec_from_file_location(path.name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.name] = module
    known = set(sys.modules)
    with _without_bytecode():
        spec.loader.exec_module(module)
    for name in sys.modules.keys() - known:
        file = Path(getattr(sys.modules[name], "__file__", None) or "")
        if file.parent == path.parent:
            _BESIDE[name] = (file, _version(file))
    return module


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Write no bytecode: of a file that changes within a second to one of equal size, Python would use the old one."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _reason(error: BaseException, where: str) -> str:
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename.endswith(where)]
    number, text = lines[-1] if lines else None, str(error)
    if isinstance(error, SyntaxError):
        number, text = error.lineno, error.msg
    line = f" (line {number})" if number else ""
    return f"{type(error).__name__}: {text}{line}" if text else f"{type(error).__name__}{line}"
