import pickle

import pytest

from bp import BProgram, BProgramError, BThreadError, Deadlock, EndlessLoop, EventSetError, ProgramEnded, sync, where
from tests.bp.programs import HOT, Ping, keeps_saying, says, trace


def test_every_error_of_the_engine_is_a_program_error() -> None:
    assert all(issubclass(kind, BProgramError) for kind in (BThreadError, EndlessLoop, ProgramEnded, Deadlock))
    assert issubclass(EventSetError, BThreadError)


def test_errors_travel_between_processes_with_all_they_know() -> None:
    """An error that cannot be unpickled breaks a process pool."""
    failed = BProgram(says(sync(request=HOT), None), says(sync(wait_for=HOT), None).named("other"))
    endless = BProgram(keeps_saying(sync(request=HOT)), max_steps=2)
    unanswered = BProgram(says(sync(request=Ping(1), block=where(Ping, hash))))  # type: ignore[arg-type]

    for program, kind in ((failed, BThreadError), (endless, EndlessLoop), (unanswered, EventSetError)):
        with pytest.raises(kind) as caught:
            trace(program)
        travelled = pickle.loads(pickle.dumps(caught.value))

        assert (type(travelled), str(travelled)) == (kind, str(caught.value))
        assert vars(travelled) == vars(caught.value)
