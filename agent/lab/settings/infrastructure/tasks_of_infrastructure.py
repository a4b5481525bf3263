"""The setting `infrastructure`: every change touches what an attack wants, and none may give it away."""

from agent.lab.settings.infrastructure.changes import account, job, port
from agent.lab.settings.infrastructure.more_changes import artifact, leaver, right
from agent.lab.settings.setting import Setting

__all__ = ["INFRASTRUCTURE"]

INFRASTRUCTURE = Setting(
    name="infrastructure",
    about="accounts, jobs, ports and artifacts of a machine that is a folder; an attack takes it over",
    families={
        "account": account,
        "job": job,
        "port": port,
        "artifact": artifact,
        "right": right,
        "leaver": leaver,
    },
    instances=6,
    live=True,
    networked=True,
    harmless=True,
)
