"""Declared secrets stay out of the log: each is written as its name, as long as the secret was.

The length stays, so that evidence still points at the right characters of a command, and the mask is a plain word, so
that a command is still parsed as it was: a redacted log replays, and is judged as the run was.
"""

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from agent.log.reading import LogError

__all__ = ["SHORTEST", "Redaction"]

SHORTEST = 8  # characters; a shorter secret would be found where it is not meant


def _long_enough(secrets: Mapping[str, str]) -> dict[str, str]:
    for name, secret in secrets.items():
        if len(secret) < SHORTEST:
            raise LogError(f"the secret {name!r} is too short to be told from other text; take {SHORTEST} characters")
    return {name: secrets[name] for name in sorted(secrets, key=lambda name: (-len(secrets[name]), name))}


@frozen
class Redaction:
    """Secrets by name, the longest first; call it with plain data, which comes back without them."""

    secrets: Mapping[str, str] = field(converter=_long_enough, repr=False)

    @property
    def names(self) -> list[str]:
        """The names of what is left out, for the header."""
        return sorted(self.secrets)

    def __call__(self, data: Any) -> Any:
        """Return plain data (what JSON can hold) in which every secret is masked, keys included."""
        match data:
            case str():
                return self._masked(data)
            case Mapping():
                return {self._masked(str(key)): self(value) for key, value in data.items()}
            case list() | tuple():
                return [self(item) for item in data]
            case _:
                return data

    def _masked(self, text: str) -> str:
        for name, secret in self.secrets.items():
            for form in _forms(secret):
                if form in text:
                    text = text.replace(form, _mask(name, len(form)))
        return text


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, and as it stands in JSON text: the arguments of calls are such text."""
    return tuple(dict.fromkeys((secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])))


def _mask(name: str, length: int) -> str:
    """Return a word of `length` letters that says what was here."""
    word = f"REDACTED_{''.join(char if char.isalnum() else '_' for char in name)}_"
    return (word * (length // len(word) + 1))[:length]
