"""A small program with an effect, for the tests of the runner: `ask` requests `Asked`, whose effect gives `Told`."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from attrs import frozen

from bp import ALL, BProgram, BThreadBody, Event, Step, bthread, sync
from bp.runner import Broken, Effect, Runner


@frozen
class Asked(Event):
    number: int = 0


@frozen
class Told(Event):
    number: int
    how: str = "told"


@frozen
class Halt(Event):
    pass


@bthread
def ask(numbers: tuple[int, ...] = (0,)) -> BThreadBody:
    for number in numbers:
        yield sync(request=Asked(number))


@bthread
def ask_and_wait(numbers: tuple[int, ...] = (0,)) -> BThreadBody:
    for number in numbers:
        yield sync(request=Asked(number))
        yield sync(wait_for=Told)


@bthread
def listen() -> BThreadBody:
    while True:
        yield sync(wait_for=ALL)


async def tell(asked: Asked) -> Told:
    return Told(asked.number)


def say_how(asked: Asked, broken: Broken) -> Told:
    return Told(asked.number, f"{broken.how}: {broken.error}" if broken.error else broken.how)


def effect(run: Callable[[Any], Any] = tell, **options: Any) -> Effect:
    return Effect(
        **{"on": Asked, "run": run, "outcome": (Told,), "broken": say_how, "until": lambda _: Halt, **options}
    )


class Book:
    """A journal that keeps everything, and knows what was flushed."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.flushed: list[Event] = []

    def record(self, step: Step) -> None:
        self.steps.append(step)

    def flush(self) -> None:
        self.flushed = self.events

    @property
    def events(self) -> list[Event]:
        return [step.event for step in self.steps]


async def outcomes_of(*effects: Effect, meanwhile: Callable[[Runner], Coroutine[Any, Any, None]] | None = None) -> Book:
    """Run a program whose one event starts these effects, and return its journal; `meanwhile` runs beside it."""
    book = Book()
    runner = Runner(BProgram(ask(), listen()), effects, book)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            if meanwhile is not None:
                tasks.start_soon(meanwhile, runner)
            await runner.run()
    return book
