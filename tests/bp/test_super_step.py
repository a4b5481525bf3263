import pytest

from bp import BProgram, BThreadBody, EndlessLoop, Record, bthread, start, sync
from tests.bp.programs import COLD, HOT, keeps_saying, says, trace


def test_a_super_step_that_never_ends_is_an_error_with_its_last_events_and_b_threads() -> None:
    program = BProgram(keeps_saying(sync(request=HOT)).named("one"), keeps_saying(sync(request=COLD)), max_steps=30)

    with pytest.raises(EndlessLoop, match=r"went past 30 events and starts; .* raise max_steps") as caught:
        trace(program)

    assert caught.value.events == (HOT,) * 10
    assert caught.value.bthreads == ("one",) * 10
    assert program.status == "failed"


def test_a_super_step_may_have_exactly_max_steps_events() -> None:
    requests = [sync(request=HOT)] * 5

    assert trace(BProgram(says(*requests), max_steps=5)) == [HOT] * 5
    with pytest.raises(EndlessLoop):
        trace(BProgram(says(*requests), max_steps=4))


def test_each_external_event_begins_a_super_step_and_is_its_first_event() -> None:
    program = BProgram(says(*[sync(wait_for=COLD), sync(request=HOT)] * 9, sync(wait_for=COLD)), max_steps=2)
    for _ in range(9):
        program.post(COLD)

    assert len(trace(program)) == 18


@bthread
def starts_itself() -> BThreadBody:
    yield start(starts_itself())


@bthread
def starts_nothing() -> BThreadBody:
    while True:
        yield start()


@pytest.mark.parametrize("endless", [starts_itself, starts_nothing])
def test_starts_count_toward_max_steps(endless: type) -> None:
    program = BProgram(endless(), max_steps=100)

    with pytest.raises(EndlessLoop) as caught:
        trace(program)

    assert caught.value.events == ()
    assert set(caught.value.bthreads) == {endless.name}  # type: ignore[attr-defined]


def test_the_b_threads_of_the_program_itself_are_no_starts() -> None:
    assert trace(BProgram(*[says()] * 5, says(sync(request=HOT)), max_steps=1)) == [HOT]


def test_a_step_whose_round_starts_too_many_is_recorded_as_failed() -> None:
    records: list[Record] = []
    program = BProgram(says(sync(request=HOT), start(*[says()] * 20)), max_steps=10, listeners=[records.append])

    with pytest.raises(EndlessLoop) as caught:
        trace(program)

    assert [(record.step.event, record.error) for record in records] == [(HOT, caught.value)]


@pytest.mark.parametrize("max_steps", [0, -1, 1.5, True, None])
def test_max_steps_is_a_positive_integer(max_steps: int) -> None:
    with pytest.raises(TypeError, match="give a positive integer"):
        BProgram(max_steps=max_steps)
