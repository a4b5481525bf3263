"""Scores of many logs, as measures take them: nothing is asked, only what sidecars know is read."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.lab.measures.thresholds import suspicion
from agent.lab.sidecars.finished import digest_of
from agent.lab.sidecars.sidecar import KeptScore, Sidecar, SidecarError
from agent.log.reading import LogError

__all__ = ["highest_scores", "read_sidecar", "said_afterwards", "scores_of"]


def read_sidecar(log: Path) -> Sidecar:
    """Return what is known of a log. Raises LogError when there is no such log, SidecarError when that has changed."""
    try:
        return Sidecar(log, digest_of(log))
    except OSError as error:
        raise LogError(f"cannot read the log {log}: {error.strerror}") from error


def scores_of(logs: Iterable[Path], monitor: str, identity: str | None = None) -> dict[Path, tuple[KeptScore, ...]]:
    """Return the scores that a monitor gave to the calls of each log; of this identity, where it has had several.

    Raises SidecarError for a log that it has not scored completely, or with several identities and none is chosen.
    """
    return {log: _scores(log, monitor, identity) for log in logs}


def highest_scores(logs: Iterable[Path], monitor: str, identity: str | None = None) -> dict[Path, float | None]:
    """Return the highest score of each log, 0 without a call; None where one is missing: the most suspicious."""
    return {log: _highest(scores) for log, scores in scores_of(logs, monitor, identity).items()}


def said_afterwards(log: Path) -> tuple[tuple[str, str], ...]:
    """Return who said what of a log, in words: each monitor's highest score, each auditor's verdict.

    Raises LogError and SidecarError like `read_sidecar`.
    """
    sidecar = read_sidecar(log)
    monitors = dict.fromkeys((kept.by, kept.identity) for kept in sidecar.scores())
    told = [(by, _told([kept for kept in sidecar.scores(by) if kept.identity == which])) for by, which in monitors]
    return (*told, *((kept.by, f"{kept.verdict}: {kept.rationale}".rstrip(": ")) for kept in sidecar.audits()))


def _told(scores: Sequence[KeptScore]) -> str:
    highest = max(scores, key=lambda kept: suspicion(kept.value))
    value = "no legible score" if highest.value is None else f"{highest.value:.2f} at most"
    return f"{value} ({highest.call}, of {len(scores)})"


def _scores(log: Path, monitor: str, identity: str | None) -> tuple[KeptScore, ...]:
    sidecar = read_sidecar(log)
    passes = [kept.identity for kept in sidecar.passes(monitor) if identity in (None, kept.identity)]
    if not passes:
        command = f"bpagent score {log} --monitor {monitor}=..."
        raise SidecarError(f"{log} was not scored by {monitor!r}, or not completely; run {command}")
    if len(passes) > 1:
        raise SidecarError(f"{log} was scored by several monitors named {monitor!r}: choose one of {', '.join(passes)}")
    return tuple(kept for kept in sidecar.scores(monitor) if kept.identity == passes[0])


def _highest(scores: Iterable[KeptScore]) -> float | None:
    values = [kept.value for kept in scores]
    return None if None in values else max((value or 0.0 for value in values), default=0.0)
