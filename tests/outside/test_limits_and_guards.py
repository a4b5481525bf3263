"""Limits and guards: time, memory, processes, retries, and which preset has which guard."""

import itertools
import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Place, bash
from tests.outside.driving import PATIENCE, is_running
from tests.outside.model_server import Stream, call, finished, refusing, saying
from tests.tables import rows

pytestmark = pytest.mark.slow

MEMORY = 200 * 1024  # KB


def test_a_wait_is_half_a_second_and_doubles_or_as_long_as_the_server_says(place: Place) -> None:
    place.server.reply(refusing(503), refusing(502), refusing(500, retry_after="0.2"), saying("Done."))

    said = place.command(*place.words("Do it"))

    first, second, third = (data["seconds"] for data in place.log.data("backoff_elapsed"))
    assert (said.code, said.out) == (0, "Done.\n")
    assert 0.35 <= first <= 0.5
    assert 0.7 <= second <= 1.0
    assert third == 0.2


def test_the_server_may_name_a_date_and_is_obeyed_for_120_seconds_at_most(place: Place) -> None:
    """An hour from now is more than the 120 seconds that are honoured; nobody waits for them here."""
    process = place.start(*place.words("Do it"))
    place.server.reply(refusing(503, retry_after=format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)))
    while "backoff_started" not in (place.log.path.read_text() if place.log.path.exists() else ""):
        assert process.poll() is None
        time.sleep(0.05)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)

    [started] = place.log.data("backoff_started")
    assert started["retry_after"] == 120
    assert place.log.end[0] == "aborted"


def test_a_server_that_is_not_there_is_asked_again(place: Place) -> None:
    words = place.words("Do it", "--option", "attempts=2", model="http://127.0.0.1:1/v1")

    said = place.command(*words)

    assert said.code == 1
    assert [data["retryable"] for data in place.log.data("inference_failed")] == [True, True]
    assert place.log.end[0] == "failed"


@rows(
    ("codes", "asked"),
    [((408, 409, 429, 503), 4), ((401, 200), 1), ((404, 200), 1)],
)
def test_four_attempts_where_another_one_may_help_and_one_otherwise(
    new_place: Callable[[], Place], codes: tuple[int, ...], asked: int
) -> None:
    """After the seconds or the date that the server names."""
    place, past = new_place(), "Wed, 21 Oct 2015 07:28:00 GMT"

    said = place.run(
        *(
            refusing(code, retry_after=past if code == 409 else "0") if code != 200 else saying("never")
            for code in codes
        )
    )

    assert (said.code, said.out) == (1, "")
    assert place.log.end[0] == "failed"
    assert len(place.server.requests) == asked
    assert [data["seconds"] for data in place.log.data("backoff_elapsed")] == [0] * (asked - 1)


def test_guards_are_in_these_presets_and_in_no_others(place: Place) -> None:
    said = place.command("presets", "--json")

    presets = {each["name"]: each for each in map(json.loads, said.out.splitlines())}
    guarded = {
        guard: {name: preset[guard] for name, preset in presets.items() if preset[guard] is not None}
        for guard in ("doom_loop", "max_failures")
    }
    assert guarded == {
        "doom_loop": {"passthrough": 3, "default": 3}, "max_failures": {"autonomous": 5, "default": 5},
    }  # fmt: skip


UNCONFINED = ("--sandbox", "off")  # inside, processes have numbers of their own


def out_of_time(new_place: Callable[[], Place], command: str, file: str) -> Place:
    """Play a command until its time is up; again with more of it where the machine was too slow to write a file."""
    for seconds in (1, 20):
        place = new_place()
        place.play(bash(command, timeout=seconds), "Done.", options=UNCONFINED)
        if (place.workspace / file).exists():
            break
    return place


def test_term_is_followed_by_kill_after_two_seconds_and_a_command_that_obeys_can_clean_up(
    new_place: Callable[[], Place],
) -> None:
    stubborn = out_of_time(new_place, "trap '' TERM; echo $$ > pid; while true; do sleep 0.2; done", "pid")
    clean = out_of_time(new_place, "trap 'echo cleaned > mark; exit' TERM; while true; do sleep 0.1; done", "mark")

    assert stubborn.log.result("c1")["is_error"] is True
    assert stubborn.log.result("c1")["duration"] >= 3000
    assert not is_running(int((stubborn.workspace / "pid").read_text()))
    assert (clean.workspace / "mark").read_text() == "cleaned\n"


def test_children_that_outlive_their_command_are_killed_and_the_answer_says_so(place: Place) -> None:
    place.play(
        bash("setsid sleep 60 > /dev/null 2>&1 < /dev/null & echo $! > pid; echo over"), "Done.", options=UNCONFINED
    )

    assert place.log.result("c1")["is_error"] is False
    assert place.log.told("c1").startswith("over\n")
    assert "killed" in place.log.told("c1")
    assert not is_running(int((place.workspace / "pid").read_text()))


def test_coding_is_not_judged_by_the_constitution_and_a_non_zero_exit_is_an_error(place: Place) -> None:
    (place.workspace / "file").touch(mode=0o600)

    place.play(bash("chmod 777 file; exit 3"), "Done.", options=("--preset", "coding"))

    assert (place.workspace / "file").stat().st_mode & 0o777 == 0o777
    assert "approval_asked" not in place.log.names
    assert place.log.result("c1")["is_error"] is True


@rows("preset", ["default", "workspace", "coding", "gated", "passthrough"])
def test_bash_takes_a_timeout_in_seconds_in_every_preset(new_place: Callable[[], Place], preset: str) -> None:
    place = new_place()
    place.play(bash("echo partial; touch printed; sleep 30", timeout=1.5), "Done.", options=("--preset", preset))

    assert place.log.result("c1")["is_error"] is True
    assert "partial" in place.log.told("c1") or not (place.workspace / "printed").exists()  # on a slow machine
    assert "1.5" in place.log.told("c1") or '"timed_out": true' in place.log.told("c1")


def peak_memory(place: Place, *words: str) -> int:
    """Run the command to its end, and return the most that it had in memory (KB), as the system counts meanwhile.

    What `wait4` says would count the tests themselves, which the process was for a moment.
    """
    process = place.start(*words)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stderr.close()
    readers = ThreadPoolExecutor(1)
    read = readers.submit(process.stdout.read)
    most = 0
    while process.poll() is None:
        with suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            most = max(most, next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")))
        time.sleep(0.02)
    read.result()
    readers.shutdown()
    return most


def test_memory_stays_bounded_whatever_a_tool_prints(place: Place) -> None:
    script = place.script(bash("yes 0123456789abcdef | head -c 240000000"), "Done.")

    used = peak_memory(place, *place.words("Do it", "--json", model=script))

    assert used < MEMORY
    assert len(place.log.told("c1")) < 300_000


@rows("kind", ["content", "arguments"])
def test_memory_stays_bounded_whatever_a_model_streams(new_place: Callable[[], Place], kind: str) -> None:
    place, piece = new_place(), "x" * 500_000

    def chunks() -> Iterator[dict[str, Any]]:
        for number in itertools.count():
            if kind == "arguments":
                delta: dict[str, Any] = {"tool_calls": [call(f"c{number}" if number == 0 else None, "bash", piece)]}
            else:
                delta = {"content": piece}
            yield from finished(delta, reason=None)
            if number > 400:
                return

    place.server.reply(Stream(chunks()), saying("Done."))

    used = peak_memory(place, *place.words("Do it", "--option", "attempts=1"))

    assert used < MEMORY
    assert place.log.end[0] == "failed"
    assert "longer than 4,000,000 bytes" in place.log.data("run_ended")[0]["text"]


def test_in_autonomous_only_complete_ends_an_objective_and_iterations_are_counted_from_its_start(place: Place) -> None:
    pursue = {"tool": "pursue_objective", "arguments": {"user_prompt": "Do it", "objective": "to do it"}}
    done = {"call": {"tool": "complete", "arguments": {"result": "All of it.", "status": "success"}}}
    before = [bash("echo 1", tool="terminal"), bash("echo 2", tool="terminal"), {"call": pursue}]
    options = ("--preset", "autonomous", "--option", "max_iterations=3")

    said = place.play(*before, "I think.", "I think on.", done, options=options)

    assert (said.code, said.out) == (0, "All of it.\n")
    assert len(place.log.data("inference_finished")) == 6
