"""Redaction: declared secrets and the keys of our models are masked in every log."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

from attrs import field, frozen

from agent.log.reading import LogError
from agent.vocabulary.encoding import dump

SHORTEST = 8  # characters; a shorter secret would match unrelated text


def keys_of(models: Iterable[object]) -> dict[str, str]:
    """Return the keys of models, by the name under which they are masked, without short ones."""
    keys = (getattr(model, "api_key", None) for model in models)
    return {f"API_KEY_{place}": key for place, key in enumerate(keys) if isinstance(key, str) and len(key) >= SHORTEST}


def _long_enough(secrets: Mapping[str, str]) -> dict[str, str]:
    for name, secret in secrets.items():
        if len(secret) < SHORTEST:
            raise LogError(f"the secret {name!r} is too short to be told from other text; take {SHORTEST} characters")
    return {name: secrets[name] for name in sorted(secrets, key=lambda name: (-len(secrets[name]), name))}


@frozen
class Redaction:
    """Secrets by name, the longest first; `line` and `data` return their argument with these masked.

    keys: those of our models, which are masked as well, and are not needed to resume a log.
    """

    secrets: Mapping[str, str] = field(converter=_long_enough, repr=False)
    keys: Mapping[str, str] = field(factory=dict, repr=False)

    def __bool__(self) -> bool:
        return bool(self.secrets or self.keys)

    def line(self, text: str) -> str:
        """Return a line of the log, which is JSON, in which every secret is masked; most have none."""
        for form in self._forms_in_lines:
            if form in text:
                return dump(self.data(json.loads(text)))
        return text

    @cached_property
    def _forms_in_lines(self) -> tuple[str, ...]:
        secrets = (*self.secrets.values(), *self.keys.values())
        return tuple(dump(form)[1:-1] for secret in secrets for form in _forms(secret))

    def data(self, data: Any) -> Any:
        """Return plain data (what JSON can hold) in which every secret is masked, keys included."""
        match data:
            case str():
                return self._masked(data)
            case Mapping():
                return {self._masked(str(key)): self.data(value) for key, value in data.items()}
            case list() | tuple():
                return [self.data(item) for item in data]
            case _:
                return data

    def _masked(self, text: str) -> str:
        for name, secret in (*self.secrets.items(), *self.keys.items()):
            for form in _forms(secret):
                if form in text:
                    text = text.replace(form, _mask(name, len(form)))
        return text


@lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, as in JSON text (the arguments of calls are such text), in hex and in base64."""
    written = (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    content = secret.encode("utf-8", "surrogatepass")
    digits = content.hex()
    encoded = [text for offset in range(3) for text in _in_base64(content, offset)]
    return tuple(dict.fromkeys((*written, digits, digits.upper(), *encoded)))


def _in_base64(content: bytes, offset: int) -> tuple[str, str]:
    """Return the base64 characters that depend on `content` alone, `offset` bytes after the begin of a group."""
    before = bytes(offset) + content
    first, last = -(-offset * 8 // 6), len(before) * 8 // 6
    return b64encode(before)[first:last].decode(), urlsafe_b64encode(before)[first:last].decode()


def _mask(name: str, length: int) -> str:
    word = f"REDACTED_{''.join(char if char.isalnum() else '_' for char in name)}_"
    return (word * (length // len(word) + 1))[:length]
