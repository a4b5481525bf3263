"""The b-threads of a log, some of them exchanged: another policy, more protocols, or without some."""

from collections.abc import Collection, Iterable, Sequence

from attrs import evolve

from agent.history.rebuilding import RebuildError, recorded_bthread, recorded_entries, recorded_preset
from agent.log.reading import RecordedRun
from agent.presets.judging import Judge
from agent.presets.preset import Preset
from agent.threads import CORE
from agent.vocabulary.spelling import meant
from bp import BThread
from constitution import Policy

__all__ = ["changed_bthreads", "within"]


def changed_bthreads(
    run: RecordedRun,
    *,
    policy: Policy | None = None,
    threads: Sequence[BThread] = (),
    without: Collection[str] = (),
) -> tuple[BThread, ...]:
    """Return the b-threads of a log as they would have been.

    policy: judges instead of the recorded one, within the paths of the run's preset. threads: those that the run had
    and that do not ship, and those that it did not have. without: the names of b-threads to leave out. Raises
    RebuildError when the program of the log is another one here, or has no such b-thread.
    """
    preset = recorded_preset(run)
    entries = recorded_entries(run, preset)
    beside = [recorded_bthread(run, entry, threads) for entry in entries if str(entry.get("name")) not in without]
    more = [bthread for bthread in threads if bthread not in beside and bthread.name not in without]
    everything = (*CORE, *_rules(preset, policy), *beside, *more)
    names = {bthread.name for bthread in everything} | {str(entry.get("name")) for entry in entries}
    _check_known(run, without, names)
    return tuple(bthread for bthread in everything if bthread.name not in without)


def within(preset: Preset, policy: Policy) -> Policy:
    """Return a policy with the paths of a preset."""
    return evolve(policy, allowed_roots=preset.allowed_paths, denied_paths=preset.denied_paths)


def _rules(preset: Preset, policy: Policy | None) -> Iterable[BThread]:
    if policy is None:
        return preset.rules()
    judging = preset if preset.policy is not None else evolve(preset, policy="default")
    return judging.rules(judge=Judge(within(preset, policy)))


def _check_known(run: RecordedRun, without: Iterable[str], names: Collection[str]) -> None:
    for name in without:
        if name not in names:
            raise RebuildError(f"{run.path} has no b-thread {name!r}; {meant(name, sorted(names))}")
