"""B-threads as values: a generator function with its arguments, ready to be started any number of times."""

from collections.abc import Callable, Generator
from functools import partial
from inspect import CO_GENERATOR
from typing import Any, Generic, ParamSpec, overload

import attrs
from attrs import frozen

from bp.statements import Start, Sync

__all__ = ["BThread", "BThreadBody", "BThreadFunction", "bthread"]

P = ParamSpec("P")
BThreadBody = Generator[Sync | Start, Any, Any]


@frozen
class BThread:
    """A b-thread that can be started: equal to another with the same function, arguments, name and priority."""

    function: Callable[..., BThreadBody]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = attrs.field(factory=dict, hash=False)
    name: str = ""
    priority: int | None = None

    def begin(self) -> BThreadBody:
        """Return a fresh generator; raises TypeError when the function gives none."""
        body = self.function(*self.args, **self.kwargs)
        if not isinstance(body, Generator):
            raise TypeError(f"b-thread {self.name!r}: its function returned {body!r}; it must yield sync(...)")
        return body

    def named(self, name: str) -> "BThread":
        """Return this b-thread under another name."""
        return attrs.evolve(self, name=name)

    def at_priority(self, priority: int) -> "BThread":
        """Return this b-thread with a priority of its own; higher goes first."""
        return attrs.evolve(self, priority=priority)


class BThreadFunction(Generic[P]):
    """A function decorated with `@bthread`; calling it gives a `BThread`, it does not run anything."""

    def __init__(self, function: Callable[P, BThreadBody], name: str | None, priority: int | None) -> None:
        named: Any = function.func if isinstance(function, partial) else function
        self.function = function
        self.name = name or named.__name__
        self.priority = priority
        self.__doc__ = named.__doc__
        self.__name__ = named.__name__
        self.__qualname__ = named.__qualname__
        self.__module__ = named.__module__
        self.__wrapped__ = function
        self._generates = bool(function.__code__.co_flags & CO_GENERATOR) if hasattr(function, "__code__") else False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> BThread:
        """Return the b-thread with these arguments; raises TypeError when they do not fit the function."""
        if self._generates:
            self.function(*args, **kwargs)  # a generator that is never begun: checks the arguments, runs nothing
        return BThread(self.function, args, kwargs, self.name, self.priority)

    def __repr__(self) -> str:
        return f"<b-thread function {self.__qualname__}>"


@overload
def bthread(function: Callable[P, BThreadBody], /) -> BThreadFunction[P]: ...
@overload
def bthread(
    *, name: str | None = None, priority: int | None = None
) -> Callable[[Callable[P, BThreadBody]], BThreadFunction[P]]: ...
def bthread(
    function: Callable[P, BThreadBody] | None = None, /, *, name: str | None = None, priority: int | None = None
) -> Any:
    """Make a generator function a b-thread: `@bthread`, `@bthread(priority=5)` or `@bthread(name="guard")`.

    Higher priority goes first; a b-thread without one inherits its starter's, and 0 at the top.

    Raises TypeError for a priority that is no integer, and for what is not a function.
    """
    if priority is not None and type(priority) is not int:
        raise TypeError(f"@bthread(priority={priority!r}): a priority is an integer; higher goes first")
    if function is None:
        return lambda decorated: BThreadFunction(decorated, name, priority)
    if not callable(function):
        raise TypeError(f"@bthread({function!r}): decorate a generator function")
    return BThreadFunction(function, name, priority)
