"""Python that a person names: `FILE.py:NAME` or `module:NAME`. It is run, so only what a person names comes here."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType


class NotImportable(Exception):
    """A file or module cannot be imported; the message says which, and why, in one line."""


def module_at(where: str) -> ModuleType:
    """Return the module `where`: a path that ends in `.py`, or a module's name. Raises NotImportable."""
    try:
        return _from_file(Path(where)) if where.endswith(".py") else import_module(where)
    except (Exception, SystemExit) as error:  # whatever a foreign file may raise
        raise NotImportable(f"{where} cannot be imported: {_reason(error, where)}") from error


def _from_file(path: Path) -> ModuleType:
    """Run a file as a module. Its name is that of the file, so that logs tell the same wherever the file lies."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    spec = spec_from_file_location(path.name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.name] = module
    spec.loader.exec_module(module)
    return module


def _reason(error: BaseException, where: str) -> str:
    number = error.lineno if isinstance(error, SyntaxError) else _last_line(error, where)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    line = f" (line {number})" if number else ""
    return f"{type(error).__name__}: {text}{line}" if text else f"{type(error).__name__}{line}"


def _last_line(error: BaseException, where: str) -> int | None:
    """Return the line of the file that was under way when it raised."""
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename.endswith(where)]
    return lines[-1] if lines else None
