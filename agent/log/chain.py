"""Records that hold together: each carries the hash of the line before it, and each yes is signed.

The chain begins with a random seed in the header. It shows that a line was changed, left out or put between; a process
that can write the log could write all of it anew. So the yes of a person is also signed, with a key that lies with the
agent's own things, which tools cannot read: a line that another process appends approves nothing.
"""

import hmac
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.vocabulary.encoding import dump

__all__ = ["CHAIN", "SIGNATURE", "chained", "link", "new_seed", "own_folder", "own_key", "signature", "wants_signature"]

CHAIN, SIGNATURE = "chain", "signature"
"""The keys of a line beside its record: the hash of the line before, in hexadecimal digits; the signature of a yes."""

KEY_BYTES = 32
APPROVAL = "approval_answered"


def new_seed() -> str:
    """Return the beginning of a chain."""
    return os.urandom(16).hex()


def link(line: bytes) -> str:
    """Return the hash of a line, without its end."""
    return sha256(line).hexdigest()


def chained(line: str, chain: str) -> str:
    """Return a record's line with the hash of the line before it, and with a signature if it lets something happen."""
    signed = ""
    if APPROVAL in line and wants_signature(record := json.loads(line)) and (key := own_key(make=True)) is not None:
        signed = f',"{SIGNATURE}":"{signature(key, chain, record)}"'
    return f'{line[:-1]},"{CHAIN}":"{chain}"{signed}}}'


def wants_signature(record: Mapping[str, Any]) -> bool:
    """Return whether a record permits a call because a person said yes."""
    return record.get("name") == APPROVAL and record["data"].get("yes") is True


def signature(key: bytes, chain: str, record: Mapping[str, Any]) -> str:
    """Return the signature of a record in its place in a log."""
    said = dump({"chain": chain, "step": record["step"], "name": record["name"], "data": record["data"]})
    return hmac.new(key, said.encode(), sha256).hexdigest()


def own_folder() -> Path:
    """Return where the agents of this user keep runs, rules and keys. Raises RuntimeError where no home is known."""
    return Path(os.environ.get("BPAGENT_HOME") or "~/.bpagent").expanduser()


def own_key(*, make: bool = False) -> bytes | None:
    """Return the key of this user's agents; `make` it if it is not there yet. None where there is none."""
    try:
        path = own_folder() / "key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, os.urandom(KEY_BYTES))
        content = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    return content if len(content) >= KEY_BYTES else None


def _write(path: Path, content: bytes) -> None:
    """Write the key as a whole, readable by its owner only; the first of several writers wins."""
    draft = path.with_name(f".key-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
