"""Effects and timers are checked where they are given, and their outcomes where they come."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from attrs import frozen

from bp import BProgram, BThreadBody, EffectError, Event, bthread, event, sync, where
from bp.runner import Effect, Runner, timer
from tests.bp.asking import Asked, Book, Halt, Told, ask, effect, listen, outcomes_of, say_how, tell

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("field", "wrong", "cure"),
    [
        ("on", Asked(0), "an event kind"),
        ("on", event("asked"), "an event kind"),
        ("on", int, "an event kind"),
        ("run", Told(0), "a function of the event"),
        ("run", None, "a function of the event"),
        ("outcome", Told, "a tuple of event kinds"),
        ("outcome", (), "a tuple of event kinds"),
        ("outcome", (Told, "halt"), "a tuple of event kinds"),
        ("broken", Told(0, "broken"), "a function of the event and a Broken"),
        ("until", "halt", "an event set, or a function of the event that returns one"),
        ("until", None, "an event set, or a function of the event that returns one"),
        ("on_resume", "never", "'again' or 'unknown'"),
        ("is_clock", 1, "True or False"),
    ],
)
async def test_what_fits_no_field_is_refused_by_name_where_it_is_given(field: str, wrong: Any, cure: str) -> None:
    with pytest.raises(TypeError) as error:
        effect(**{field: wrong})

    assert str(error.value).startswith(f"Effect({field}={wrong!r}): give {cure}")


async def test_an_effect_that_takes_no_time_is_a_plain_function() -> None:
    def answer(asked: Asked) -> Told:
        return Told(asked.number)

    def fail(asked: Asked) -> Told:
        raise OSError("no disk")

    assert (await outcomes_of(effect(answer))).events == [Asked(0), Told(0)]
    assert (await outcomes_of(effect(fail))).events == [Asked(0), Told(0, "failed: no disk")]


async def hang(_: Asked) -> Told:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


@pytest.mark.parametrize("until", [Halt, Halt(), [Halt], Halt | Told, where(Halt), lambda _: [Halt]])
async def test_an_effect_is_cancelled_by_a_set_or_by_what_a_function_returns(until: Any) -> None:
    async def halt(runner: Runner) -> None:
        await anyio.wait_all_tasks_blocked()
        runner.post(Halt())

    book = await outcomes_of(effect(hang, until=until), meanwhile=halt)

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


@pytest.mark.parametrize("until", [lambda asked: "halt", lambda asked: 1 / 0])
async def test_a_function_that_returns_no_set_is_named(until: Callable[[Any], Any]) -> None:
    runner = Runner(BProgram(ask()), [effect(until=until)])

    with pytest.raises(EffectError, match=r"the `until` of the effect of Asked\(number=0\)") as error:
        await runner.run()
    assert error.value.started == Asked(0)


async def test_an_outcome_about_something_else_is_an_error() -> None:
    """Found: it was delivered, no b-thread heard it, and the run returned as if all were well."""

    async def tell_wrong(asked: Asked) -> Told:
        return Told(asked.number + 1)

    runner = Runner(BProgram(ask(), listen()), [effect(tell_wrong)], book := Book())

    with anyio.fail_after(5), pytest.raises(EffectError, match=r"its number must be 0, as in Asked\(number=0\)"):
        await runner.run()
    assert book.events == [Asked(0)]


async def test_a_broken_outcome_about_something_else_is_an_error() -> None:
    async def fail(_: Asked) -> Told:
        raise ValueError("no")

    runner = Runner(BProgram(ask()), [effect(fail, broken=lambda asked, broken: Told(7))])

    with anyio.fail_after(5), pytest.raises(EffectError, match=r"asked has no outcome: .*Told\(number=7"):
        await runner.run()


async def test_a_value_that_is_not_equal_to_itself_is_still_the_same() -> None:
    nan = float("nan")

    @bthread
    def light() -> BThreadBody:
        yield sync(request=Lit(nan, 0))  # type: ignore[arg-type]
        ended.append((yield sync(wait_for=WentOut)))

    ended: list[WentOut] = []
    with anyio.fail_after(5):
        await Runner(BProgram(light()), [timer(on=Lit, outcome=WentOut, seconds=0)]).run()

    assert [type(event) for event in ended] == [WentOut]


async def test_two_effects_of_one_kind_are_named() -> None:
    one = effect()
    for other in (one, effect()):
        with pytest.raises(ValueError, match="two effects start on Asked"):
            Runner(BProgram(ask()), [one, other])


# Timers


@frozen
class Lit(Event):
    lamp: int
    seconds: float = 0.01


@frozen
class WentOut(Event):
    lamp: int


@frozen
class Kept(Event):
    lamp: int


@frozen
class Touched(Event):
    lamp: int


@bthread
def light_two_lamps(seconds: float = 0.01) -> BThreadBody:
    yield sync(request=Lit(1, seconds))
    yield sync(request=Lit(2, 0.01))
    yield sync(wait_for=WentOut(2))


@pytest.mark.parametrize("seconds", [0.01, 0, lambda lit: lit.seconds])
async def test_a_timer_goes_off_about_what_started_it(seconds: Any) -> None:
    runner = Runner(BProgram(light_two_lamps()), [timer(on=Lit, outcome=WentOut, seconds=seconds)], book := Book())

    with anyio.fail_after(5):
        await runner.run()

    assert {*book.events[2:]} <= {WentOut(1), WentOut(2)}
    assert WentOut(2) in book.events


async def test_a_timer_that_is_cancelled_says_so_and_never_goes_off() -> None:
    @bthread
    def touch() -> BThreadBody:
        yield sync(wait_for=WentOut(2))
        yield sync(request=Touched(1))

    lamps = timer(
        on=Lit,
        outcome=WentOut,
        seconds=lambda lit: lit.seconds,
        until=lambda lit: where(Touched, lamp=lit.lamp),
        cancelled=Kept,
    )
    runner = Runner(BProgram(light_two_lamps(seconds=1000), touch(), listen()), [lamps], book := Book())

    with anyio.fail_after(5):
        await runner.run()

    assert book.events == [Lit(1, 1000), Lit(2), WentOut(2), Touched(1), Kept(1)]


@frozen
class Colored(Event):
    lamp: int
    color: str


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"seconds": -1}, r"timer\(seconds=-1\): give a number of seconds"),
        ({"seconds": float("nan")}, r"timer\(seconds=nan\): give a number of seconds"),
        ({"seconds": float("inf")}, r"timer\(seconds=inf\): give a number of seconds"),
        ({"seconds": "1"}, r"timer\(seconds='1'\): give a number of seconds"),
        ({"until": Touched}, r"timer\(until=.*\): give cancelled= as well"),
        ({"outcome": Colored}, r"Colored has a field 'color'.* that Lit does not have"),
        ({"until": Touched, "cancelled": Colored}, r"Colored has a field 'color'.* that Lit does not have"),
        ({"on": Lit(1)}, r"Effect\(on=Lit"),
        ({"outcome": "went out"}, r"Effect\(outcome=\('went out',\)\)"),
        ({"until": "touched", "cancelled": Kept}, r"Effect\(until='touched'\)"),
    ],
)
async def test_a_timer_that_cannot_work_is_refused_where_it_is_made(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        timer(**{"on": Lit, "outcome": WentOut, "seconds": 1, **options})


@pytest.mark.parametrize("seconds", [lambda lit: -1, lambda lit: "1", lambda lit: lit.minutes])
async def test_a_timer_whose_time_cannot_be_told_ends_the_run_with_an_error(seconds: Any) -> None:
    runner = Runner(BProgram(light_two_lamps()), [timer(on=Lit, outcome=WentOut, seconds=seconds)])

    with anyio.fail_after(5), pytest.raises(EffectError, match="lit has no outcome"):
        await runner.run()
    await runner.close()


def test_an_effect_keeps_what_it_was_given() -> None:
    given = Effect(on=Asked, run=tell, outcome=(Told,), broken=say_how)

    assert (given.on, given.outcome, given.on_resume, given.is_clock) == (Asked, (Told,), "again", False)
