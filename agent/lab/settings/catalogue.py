"""The settings by name, and those of users: `FILE.py:NAME`, `module:NAME`, `FILE.py:FUNCTION(size=3)`.

`agentdojo` is there where its extra is installed.
"""

from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType

from agent.lab.settings.infrastructure import INFRASTRUCTURE
from agent.lab.settings.operations import OPERATIONS
from agent.lab.settings.repair import REPAIR
from agent.lab.settings.setting import Setting, SettingError
from agent.vocabulary.errors import meant
from agent.vocabulary.importing import NotImportable, module_at, read_name

SETTINGS = {setting.name: setting for setting in (REPAIR, OPERATIONS, INFRASTRUCTURE)}

EXTRAS = {
    "agentdojo": "agent.lab.settings.agentdojo:AGENTDOJO",
    "agentdojo_injected": "agent.lab.settings.agentdojo:INJECTED",
    "agentdojo_whole": "agent.lab.settings.agentdojo:WHOLE",
}
"""Settings that need the extra of their first word, and their modules."""


def setting_named(name: str) -> Setting:
    """Return a setting by its name, or from a file or module of yours. Raises SettingError."""
    if name in SETTINGS:
        return SETTINGS[name]
    if name in EXTRAS:
        extra = name.partition("_")[0]
        if find_spec(extra) is None:
            told = f"the setting {name!r} needs the extra {extra!r}, which is not installed"
            raise SettingError(f"{told}: pip install 'bpagent[{extra}]'")
        return setting_named(EXTRAS[name])
    if ":" not in name:
        known = (*SETTINGS, *EXTRAS, "FILE.py:NAME", "module:NAME")
        raise SettingError(f"there is no setting {name!r}; {meant(name, known)}")
    try:
        named = read_name(name)
        return _made(name, module_at(named.where))
    except NotImportable as error:
        raise SettingError(f"the setting {name!r}: {error}") from error


@lru_cache(maxsize=64)
def _made(name: str, module: ModuleType) -> Setting:
    """Return a setting, or the result of a function that makes one; cached per module."""
    found = read_name(name).value("settings", Setting)
    if callable(found) and not isinstance(found, Setting):
        found = found()
    if not isinstance(found, Setting):
        raise SettingError(f"{name!r} is not a setting; make it a Setting(...), or a function that returns one")
    return found
