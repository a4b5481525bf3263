"""Everything that can happen in a run: the public name of `agent.vocabulary.events`."""

from agent.vocabulary.events import *  # noqa: F403
from agent.vocabulary.events import __all__ as __all__
