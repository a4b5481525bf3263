"""Under `python -O`, which drops `assert` statements: a function that has lost one is refused."""

import ast
import linecache
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

from bp.verification.looks import VerificationError

LIBRARIES = frozenset({*sys.stdlib_module_names, "bp", "attr", "attrs"}) - {"__main__"}


def watched(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function. Raises VerificationError if one that it enters has lost its assertions."""
    lost: list[str] = []

    def hear(frame: FrameType, event: str, _: Any) -> None:
        is_of_library = frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES
        if event == "call" and not is_of_library and _has_lost_assertions(frame.f_code):
            lost.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(hear)
    try:
        return function(*arguments)
    finally:
        sys.setprofile(before)
        if lost:
            raise VerificationError(
                f"b-thread {name!r} calls {lost[0]!r}, which has lost its assertions: Python runs with -O; run it "
                "without -O and PYTHONOPTIMIZE, or raise AssertionError"
            )


@cache
def _has_lost_assertions(code: CodeType) -> bool:
    """Return whether a function has an `assert` statement, or its source cannot be read.

    A name such as <lambda> is that of an expression, which has none, and neither have generated methods.
    """
    if code.co_name[0] == "<" or code.co_qualname.startswith("__create_fn__.") or "generated" in code.co_filename:
        return False
    source = "".join(linecache.getlines(code.co_filename))
    return not source or code.co_firstlineno in _lines_of_asserting(source)


@cache
def _lines_of_asserting(source: str) -> frozenset[int]:
    """Return the first lines of the functions of a file that have an `assert` statement."""
    functions = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)]
    asserting = [each for each in functions if any(isinstance(inner, ast.Assert) for inner in ast.walk(each))]
    return frozenset((each.decorator_list[0] if each.decorator_list else each).lineno for each in asserting)
