"""A log's program once more, from its header: the preset's b-threads, then those that the run had beside them.

A log is data and must not run code: of the b-threads that only a log names, those are imported that ship with this
package; all others have to be given by whoever rebuilds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent.history.bthread_registry import shipped
from agent.log.header import named
from agent.log.reading import LogError, RecordedRun
from agent.presets.preset import Preset
from bp import BProgram, BThread, Record

__all__ = [
    "RebuildError",
    "rebuild",
    "recorded_bthread",
    "recorded_bthreads",
    "recorded_entries",
    "recorded_preset",
]


class RebuildError(LogError):
    """The program of a log cannot be built again: the message says which b-thread is missing or differs."""


def rebuild(
    run: RecordedRun, threads: Sequence[BThread] = (), listeners: Iterable[Callable[[Record], None]] = ()
) -> BProgram:
    """Return the program that made a log, not begun; `listeners` are told of its steps.

    `threads` are the b-threads that the run had beside its preset's and that do not ship, in any order. Raises
    RebuildError when the header cannot be read, or when a b-thread is missing, differs, or was not in the run.
    """
    preset, beside = recorded_bthreads(run, threads)
    return BProgram(*preset.bthreads(), *beside, listeners=listeners)


def recorded_bthreads(run: RecordedRun, threads: Sequence[BThread] = ()) -> tuple[Preset, tuple[BThread, ...]]:
    """Return the preset of a log, and the b-threads that the run had beside it. Raises RebuildError like `rebuild`."""
    preset = recorded_preset(run)
    recorded = _recorded_bthreads(run)
    chosen = preset.bthreads()
    beside = tuple(recorded_bthread(run, entry, threads) for entry in recorded[len(chosen) :])
    _check_equal(run, recorded, [named(bthread) for bthread in (*chosen, *beside)])
    _check_all_used(run, threads, beside)
    return preset, beside


def recorded_entries(run: RecordedRun, preset: Preset) -> list[Mapping[str, Any]]:
    """Return what the header says of the b-threads beside the preset's. Raises RebuildError if those differ."""
    recorded, chosen = _recorded_bthreads(run), preset.bthreads()
    _check_equal(run, recorded[: len(chosen)], [named(bthread) for bthread in chosen])
    return recorded[len(chosen) :]


def recorded_preset(run: RecordedRun) -> Preset:
    """Return the preset of a log, with its options. Raises RebuildError when the header does not say it."""
    configuration = run.header.get("configuration")
    if not isinstance(configuration, Mapping):
        raise RebuildError(f"{run.path}, line 1: the header has no configuration; the log was changed or damaged")
    try:
        return Preset(**configuration)
    except (TypeError, ValueError) as error:
        reason = str(error.args[0]).splitlines()[0] if error.args else type(error).__name__
        raise RebuildError(
            f"{run.path}, line 1: its configuration does not fit this program ({reason}); replay it with the "
            f"version that made it: {_version(run)}"
        ) from error


def _recorded_bthreads(run: RecordedRun) -> list[Mapping[str, Any]]:
    recorded = run.header.get("bthreads")
    if not isinstance(recorded, list) or not all(isinstance(entry, Mapping) for entry in recorded):
        raise RebuildError(f"{run.path}, line 1: the header has no list of b-threads; the log was changed or damaged")
    return recorded


def recorded_bthread(run: RecordedRun, entry: Mapping[str, Any], threads: Sequence[BThread]) -> BThread:
    """Return the b-thread that `entry` names: one of `threads`, or one that ships. Raises RebuildError for others."""
    given = [bthread for bthread in threads if named(bthread) == entry]
    found = given[0] if given else shipped(entry)
    if found is None:
        function = str(entry.get("function"))
        raise RebuildError(
            f"{run.path} was made with the b-thread {entry.get('name')!r} from {function}, which only its author "
            f"can vouch for; give it again: --protocol {function}"
        )
    return found


def _check_equal(run: RecordedRun, recorded: Sequence[Any], built: Sequence[Any]) -> None:
    for number in range(max(len(recorded), len(built))):
        then = recorded[number] if number < len(recorded) else None
        now = built[number] if number < len(built) else None
        if then != now:
            raise RebuildError(
                f"{run.path} is of another program: its b-thread {number + 1} was {_shown(then)}, here it is "
                f"{_shown(now)}; replay it with the version that made it: {_version(run)}"
            )


def _check_all_used(run: RecordedRun, threads: Sequence[BThread], used: Sequence[BThread]) -> None:
    for bthread in threads:
        if bthread not in used:
            raise RebuildError(f"{run.path} was made without the b-thread {bthread.name!r}; leave it out to replay")


def _shown(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "not there"
    arguments = ", ".join(map(str, entry.get("arguments") or ()))
    return f"{entry.get('name')}({arguments})"


def _version(run: RecordedRun) -> str:
    versions = run.header.get("versions")
    version = versions.get("bpagent") if isinstance(versions, Mapping) else None
    return f"bpagent {version}" if version else "bpagent, version not recorded"
