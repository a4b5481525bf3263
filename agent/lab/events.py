"""What can happen in the laboratory besides what happens in any run: scores, audits, chance, containment, roles.

These words stand in `agent.questions`, because those who stop a run have to know them; this is where to import them.
"""

from agent.questions import (
    AuditGiven,
    AuditRequested,
    AuditVerdict,
    ChanceDrawn,
    ChanceRequested,
    Contained,
    Draft,
    DraftForgone,
    Honeypot,
    QuestionForgone,
    RoleDisabled,
    ScoreGiven,
    ScoreRequested,
    Subject,
    Trajectory,
    WholeEpisode,
)

__all__ = [
    "AuditGiven",
    "AuditRequested",
    "AuditVerdict",
    "ChanceDrawn",
    "ChanceRequested",
    "Contained",
    "Draft",
    "DraftForgone",
    "Honeypot",
    "QuestionForgone",
    "RoleDisabled",
    "ScoreGiven",
    "ScoreRequested",
    "Subject",
    "Trajectory",
    "WholeEpisode",
]
