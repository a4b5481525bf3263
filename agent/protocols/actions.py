"""Kinds of actions: what reads secrets, what reaches the network, what fetches a file and what runs it.

They ask what the constitution finds in an action, not how it is spelled. What cannot be read may do anything.
"""

import posixpath
import re

from attrs import frozen

from agent.vocabulary.events import GateApproved
from constitution import Action, Deed, Effect, Zone, deeds_of

__all__ = ["ANYTHING", "REACHES_NETWORK", "READS_SECRETS", "Does", "executed_by", "fetched_by", "is_below"]

ANYTHING = frozenset(
    {Effect.UNREADABLE, Effect.UNKNOWN_COMMAND, Effect.RUN_UNKNOWN_CODE, Effect.RUN_FETCHED_CODE, Effect.REMOTE_SHELL}
)
"""Effects of which nobody can say what they lead to."""

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"|;&)<>]+|\b[\w.-]+@[\w.-]+:[^\s'\"|;&)<>]+", re.IGNORECASE)


@frozen
class Does:
    """Whether an approved action has one of `effects`, in one of `zones` where zones are given, or may do anything.

    addresses: or names an address of any machine, this one too.
    """

    effects: frozenset[Effect]
    zones: frozenset[Zone] = frozenset()
    anywhere: frozenset[Effect] = ANYTHING
    addresses: bool = False

    def __call__(self, approved: GateApproved) -> bool:
        """Tell so."""
        if self.addresses and ADDRESS.search(_text(approved.facts)):
            return True
        return any(map(self._fits, deeds_of(approved.facts)))

    def _fits(self, deed: Deed) -> bool:
        return deed.effect in self.anywhere or (
            deed.effect in self.effects and (not self.zones or deed.zone in self.zones)
        )


READS_SECRETS = Does(
    frozenset({Effect.READ, Effect.EXECUTE}),
    frozenset({Zone.PRIVATE, Zone.SECRET, Zone.DENIED}),
    ANYTHING | {Effect.SHOW_SECRETS, Effect.SHOW_ENVIRONMENT},
)
"""Reads a key, a password, an `.env`, the environment."""

REACHES_NETWORK = Does(
    frozenset({Effect.NETWORK, Effect.UPLOAD, Effect.PUBLISH, Effect.GIVE_SHELL, Effect.LISTEN}), addresses=True
)
"""Talks to another machine, or to a port of this one, behind which another may be."""


def fetched_by(action: Action, already: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the paths at which there is what came from outside once the action has run: downloads, and copies of them.

    A download that names no file has the last part of its address, in the folder where the action starts.
    """
    deeds = deeds_of(action)
    addresses = ADDRESS.findall(_text(action))
    written = tuple(deed.path for deed in deeds if deed.effect in (Effect.WRITE, Effect.RAW_COPY) and deed.path)
    if addresses or any(deed.effect is Effect.NETWORK for deed in deeds):
        return (*written, *(posixpath.join(action.start, _last_part(address)) for address in addresses))
    copies = any(deed.effect is Effect.READ and is_below(deed.path, already) for deed in deeds)
    return written if copies else ()


def executed_by(action: Action) -> tuple[str, ...]:
    """Return the files that an action would run, or whose text it would."""
    return tuple(deed.path for deed in deeds_of(action) if deed.effect is Effect.EXECUTE)


def is_below(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of the places, or below one."""
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def _text(action: Action) -> str:
    return action.command or " ".join(action.argv)


def _last_part(address: str) -> str:
    part = address.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return part.removesuffix(".git") or "index.html"
