"""The hash chain of a log: each record carries the hash of the line before it, and each yes is signed.

The hash is the SHA-256 of a line without its end; the chain begins with a random seed in the header. It reveals lines
that were changed, removed or inserted; but a process that can write the log could rewrite all of it. So each yes of a
user is also signed, with a key in the agent's own folder, which tools cannot read: a line that another process appends
approves nothing.

The chain alone does not reveal a missing end. So that folder, if it exists (the command line makes it), also keeps the
number of lines of each log and the hash of the last one: in `log_heads`, a file for each log, found by its path and its
seed. A copy is another log, without such a file. The file is written after the log, so that a killed process leaves a
log at least as long as the file says.
"""

import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from agent.vocabulary.encoding import dump

CHAIN, SIGNATURE = "chain", "signature"
"""The keys of a line beside its record: the hash of the line before, in hexadecimal digits; the signature of a yes."""

KEY_BYTES = 32
SIGNED = ("approval_answered", "right_answered", "rule_granted")
"""The records that permit something: a yes of the user is signed, and so is a rule."""


def new_seed() -> str:
    """Return the beginning of a chain."""
    return os.urandom(16).hex()


def signature_of(line: str, chain: str) -> str:
    """Return the signature's key and value for the line of a record that permits something; else nothing."""
    if wants_signature(record := json.loads(line)) and (key := own_key(make=True)) is not None:
        return f',"{SIGNATURE}":"{signature(key, chain, record)}"'
    return ""


def wants_signature(record: Mapping[str, Any]) -> bool:
    """Return whether a record permits something because a user said so."""
    return record.get("name") in SIGNED and record["data"].get("yes", True) is True


def signature(key: bytes, chain: str, record: Mapping[str, Any]) -> str:
    """Return the signature of a record in its place in a log."""
    said = dump({"chain": chain, "step": record["step"], "name": record["name"], "data": record["data"]})
    return hmac.new(key, said.encode(), sha256).hexdigest()


def own_folder() -> Path:
    """Return the folder of this user's runs, rules and keys. Raises RuntimeError without a home folder."""
    return Path(os.environ.get("BPAGENT_HOME") or "~/.bpagent").expanduser()


def own_key(*, make: bool = False) -> bytes | None:
    """Return the key of this user's agents; `make` it if it is not there yet. None where there is none."""
    try:
        path = own_folder() / "key"
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent) as draft, suppress(FileExistsError):  # the first of several wins
                draft.write(os.urandom(KEY_BYTES))
                draft.flush()
                os.link(draft.name, path)  # as a whole, readable by its owner only
        content = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    return content if len(content) >= KEY_BYTES else None


class End:
    """The open file that holds the length of one log and the hash of its last line."""

    def __init__(self, descriptor: int) -> None:
        """Take the open file."""
        self._descriptor = descriptor

    def note(self, lines: int, link: str) -> None:
        """Write the number of lines of the log and the hash of the last one, in a fixed number of bytes."""
        try:
            os.pwrite(self._descriptor, f"{lines:012d} {link}".encode(), 0)
        except OSError:
            return  # then it is unknown, as for a copy

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def open_end(path: Path, seed: str) -> End | None:
    """Open or make the file with the end of a log, where there is a folder for it."""
    try:
        file = _end_file(path, seed)
        with suppress(FileExistsError):
            os.mkdir(file.parent, 0o700)
        return End(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except (OSError, RuntimeError):
        return None


def end_of(path: Path, seed: str) -> tuple[int, str] | None:
    """Return the number of lines that a log had when it was written last, and the hash of its last line.

    None where this is unknown: the log was written elsewhere, copied or moved, or nothing is kept here.
    """
    try:
        lines, found = _end_file(path, seed).read_text().split()
        return int(lines), found
    except (OSError, RuntimeError, ValueError):
        return None


def _end_file(path: Path, seed: str) -> Path:
    name = sha256(f"{os.path.realpath(path)}\0{seed}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return own_folder() / "log_heads" / name
