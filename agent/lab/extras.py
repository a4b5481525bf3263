"""Libraries of the extra `lab`, imported when they are used: scipy for intervals, matplotlib for figures, pyarrow."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from agent.vocabulary.errors import AgentError

LIBRARIES = ("scipy", "matplotlib", "pyarrow")


class MissingExtra(AgentError):
    """A library of the extra `lab` is not installed; the message names the cure."""

    def __init__(self, library: str) -> None:
        super().__init__(f"experiments need {library}, which is not installed; pip install 'bpagent[lab]'")


def check_extra() -> None:
    """Raise MissingExtra before an experiment that could not write its report."""
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise MissingExtra(library)


def needed(module: str) -> Any:
    """Return a module of these libraries. Raises MissingExtra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module.partition(".")[0]) from error
