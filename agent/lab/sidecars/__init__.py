"""Sidecars: what monitors and auditors say of a finished log, in a file beside it; the log itself is never touched.

- `finished_log`: a log whose runs have ended: its calls, each with what a monitor would have been shown
- `sidecar`: the file, a line for each fact, with which monitor said so; another log's, or a changed one's, is refused
- `scoring`: monitors asked about the calls of logs, once for each fact; the most suspicious logs audited
"""

from agent.lab.sidecars.finished_log import FinishedLog, Occasion, read_finished
from agent.lab.sidecars.scoring import Audited, Scored, audit_logs, score_logs
from agent.lab.sidecars.sidecar import (
    KeptAudit,
    KeptPass,
    KeptScore,
    Sidecar,
    SidecarError,
    highest_scores,
    identity_of,
    read_sidecar,
    said_afterwards,
    scores_of,
    sidecar_path,
)

__all__ = [
    "Audited",
    "FinishedLog",
    "KeptAudit",
    "KeptPass",
    "KeptScore",
    "Occasion",
    "Scored",
    "Sidecar",
    "SidecarError",
    "audit_logs",
    "highest_scores",
    "identity_of",
    "read_finished",
    "read_sidecar",
    "said_afterwards",
    "score_logs",
    "scores_of",
    "sidecar_path",
]
