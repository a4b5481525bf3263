"""The settings by name, and those that somebody has written: `FILE.py:NAME` or `module:NAME`.

`agentdojo` is there where its extra is installed.
"""

import difflib
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from agent.errors import AgentError
from agent.lab.settings.infrastructure import INFRASTRUCTURE
from agent.lab.settings.operations import OPERATIONS
from agent.lab.settings.repair import REPAIR
from agent.lab.settings.setting import Setting

__all__ = ["EXTRAS", "SETTINGS", "SettingError", "setting_named"]

SETTINGS = {setting.name: setting for setting in (REPAIR, OPERATIONS, INFRASTRUCTURE)}

EXTRAS = {"agentdojo": "agent.lab.settings.agentdojo.tasks_of_agentdojo:AGENTDOJO"}
"""Settings that need the extra of their name, and where they are."""


class SettingError(AgentError):
    """There is no such setting; the message names the nearest."""


def setting_named(name: str) -> Setting:
    """Return a setting by its name, or from a file or module of yours. Raises SettingError."""
    if name in SETTINGS:
        return SETTINGS[name]
    if name in EXTRAS:
        _require(name)
        return setting_named(EXTRAS[name])
    where, _, attribute = name.rpartition(":")
    if not where:
        near = difflib.get_close_matches(name, (*SETTINGS, *EXTRAS), n=1)
        cure = f"did you mean {near[0]!r}?" if near else f"settings: {', '.join((*SETTINGS, *EXTRAS))}"
        raise SettingError(f"there is no setting {name!r}; {cure} Your own: FILE.py:NAME or module:NAME")
    found = getattr(_imported(name, where), attribute, None)
    if not isinstance(found, Setting):
        raise SettingError(f"{name!r} is no setting; make it a Setting(...)")
    return found


def _require(extra: str) -> None:
    if find_spec(extra) is None:
        told = f"the setting {extra!r} needs the extra {extra!r}, which is not installed"
        raise SettingError(f"{told}: pip install 'bpagent[{extra}]'")


def _imported(name: str, where: str) -> object:
    try:
        return _from_file(Path(where)) if where.endswith(".py") else import_module(where)
    except Exception as error:  # whatever a foreign file may raise
        raise SettingError(f"the setting {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> object:
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
