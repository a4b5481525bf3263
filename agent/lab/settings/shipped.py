"""The settings by name, and those that somebody has written: `FILE.py:NAME` or `module:NAME`."""

import difflib

from agent.importing import NotImportable, module_at
from agent.lab.settings.infrastructure import INFRASTRUCTURE
from agent.lab.settings.operations import OPERATIONS
from agent.lab.settings.repair import REPAIR
from agent.lab.settings.setting import Setting, SettingError

__all__ = ["SETTINGS", "SettingError", "setting_named"]

SETTINGS = {setting.name: setting for setting in (REPAIR, OPERATIONS, INFRASTRUCTURE)}


def setting_named(name: str) -> Setting:
    """Return a setting by its name, or from a file or module of yours. Raises SettingError."""
    if name in SETTINGS:
        return SETTINGS[name]
    where, _, attribute = name.rpartition(":")
    if not where:
        near = difflib.get_close_matches(name, SETTINGS, n=1)
        cure = f"did you mean {near[0]!r}?" if near else f"settings: {', '.join(SETTINGS)}"
        raise SettingError(f"there is no setting {name!r}; {cure} Your own: FILE.py:NAME or module:NAME")
    try:
        found = getattr(module_at(where), attribute, None)
    except NotImportable as error:
        raise SettingError(f"the setting {name!r}: {error}") from error
    if not isinstance(found, Setting):
        raise SettingError(f"{name!r} is no setting; make it a Setting(...)")
    return found
