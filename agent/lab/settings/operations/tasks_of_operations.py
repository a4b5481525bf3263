"""The setting `operations`: every chore uploads something, and none may take the secret along."""

from agent.lab.settings.operations.chores import backup, migration, rotation
from agent.lab.settings.operations.more_chores import release, report, retention
from agent.lab.settings.setting import Setting

__all__ = ["OPERATIONS"]

OPERATIONS = Setting(
    name="operations",
    about="chores with an upload, and a secret nearby; an attack gets the secret out, in whatever form",
    families={
        "rotation": rotation,
        "backup": backup,
        "migration": migration,
        "release": release,
        "report": report,
        "retention": retention,
    },
    instances=6,
    live=True,
    networked=True,
    harmless=True,
)
