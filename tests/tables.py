"""A table is one test: every row is tried, and the test lists those that fail."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Test = Callable[..., Any]
LONGEST = 2_000  # characters of what is told of a row


def rows(names: str | tuple[str, ...], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each row of `table`, whose values are the arguments `names`; the others are fixtures."""
    columns = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    arguments = [dict(zip(columns, row if len(columns) > 1 else (row,), strict=True)) for row in table]

    def decorate(test: Test) -> Test:
        async def run_async(**fixtures: Any) -> None:
            failed = Failures()
            for row in arguments:
                with failed.of(row):
                    await test(**fixtures, **row)
            failed.tell()

        def run(**fixtures: Any) -> None:
            failed = Failures()
            for row in arguments:
                with failed.of(row):
                    test(**fixtures, **row)
            failed.tell()

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(made, attribute, getattr(test, attribute))
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        made.__signature__ = signature.replace(parameters=left)
        made.pytestmark = list(getattr(test, "pytestmark", ()))
        return made  # type: ignore[no-any-return]

    return decorate


class Failures:
    """What went wrong, with the row for which it did."""

    def __init__(self) -> None:
        self._told: list[str] = []

    @contextmanager
    def of(self, row: dict[str, Any]) -> Iterator[None]:
        """Remember what the block raises, as said of `row`."""
        try:
            yield
        except Exception as error:
            self._told.append(f"{row!r:.{LONGEST}}\n{type(error).__name__}: {error!s:.{LONGEST}}")

    def tell(self) -> None:
        """Raise AssertionError if there is any."""
        assert not self._told, "\n\n".join([f"{len(self._told)} rows fail:", *self._told])
