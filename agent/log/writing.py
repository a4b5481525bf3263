"""Writing the log: locked for one writer, flushed before the effects of its events start, and with secrets masked."""

import fcntl
import json
import os
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any

from attrs import field, frozen

from agent.log.chain import CHAIN, SIGNED, End, new_seed, open_end, signature_of
from agent.log.reading import LogError, RecordedRun, read_log
from agent.vocabulary.encoding import dump, record_line
from bp import Step


class LogChanged(LogError):
    """Another process has replaced, cut or written the log."""


class LogInUse(LogError):
    """Another process (or another agent of this one) writes the log; the message names the process."""


# The lock


def lock(descriptor: int, path: Path, how: int = fcntl.LOCK_EX) -> None:
    """Lock an open log until it is closed, or its process ends. Raises LogInUse, and OSError.

    Not `filelock`, which locks another file, leaves it behind, and cannot name the holder.
    """
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder, cure = _holder(descriptor), "wait for its end, or end it"
        if holder == f"process {os.getpid()}":
            holder, cure = f"{holder}, which is this one", "close its agent first, or use `with Agent(...) as agent:`"
        raise LogInUse(f"the log {path} is in use by {holder}; {cure}") from error


def check_free(path: Path) -> None:
    """Raise LogInUse when another process writes the log now, LogError when it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror}") from error
    try:
        lock(descriptor, path, how=fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def is_in_use(path: Path) -> bool:
    """Return whether another process writes the log now. Raises LogError when it cannot be opened."""
    try:
        check_free(path)
    except LogInUse:
        return True
    return False


def _holder(descriptor: int) -> str:
    """Name the process that holds the lock, if the system knows it."""
    inode = str(os.fstat(descriptor).st_ino)
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "another process"
    for words in locks:
        if words[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and words[5].rpartition(":")[2] == inode:
            return f"process {words[4]}"
    return "another process"


# Secrets: declared ones and the keys of our models are masked in every log

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
                    word = f"REDACTED_{''.join(char if char.isalnum() else '_' for char in name)}_"
                    text = text.replace(form, (word * (len(form) // len(word) + 1))[: len(form)])
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


# The log

LARGE = 1_000_000  # bytes that a late log buffers


class LogWriter:
    """An open log: locked while it is written, readable by its owner only. What was not flushed is not in the file.

    `redaction` masks every further line.
    """

    redaction: Redaction | None = None
    _end: End | None = None
    _late = False
    _last = b""

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        redaction: Redaction | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Make a new log, and its folder. late: it is written when it is closed, and in large pieces before.

        Raises LogError when there is something at `path` already: a log is never overwritten.
        """
        self._adopt(Path(path), _opened(Path(path), os.O_CREAT))
        self.redaction, self._late = redaction, late
        try:
            lock(self._descriptor, self.path)
            if os.fstat(self._descriptor).st_size:
                raise LogError(f"the log {self.path} exists already; name another file, or remove it")
            seed = new_seed()
            self._end = None if late else open_end(self.path, seed)  # no tool sees a late log
            self.record({**header, CHAIN: seed})
            self._chain = sha256(self._last).hexdigest()
            self.flush()
        except OSError as error:
            self.close()
            raise _unwritable(self.path, error) from error
        except LogError:
            self.close()
            raise

    @classmethod
    def going_on(cls, recorded: RecordedRun, descriptor: int) -> "LogWriter":
        """Return a writer that appends to an open and locked log that was read."""
        writer = cls.__new__(cls)
        writer._adopt(recorded.path, descriptor)
        writer._chain, writer._lines = recorded.chain, len(recorded.records) + 1
        writer._end = open_end(recorded.path, recorded.header[CHAIN]) if recorded.chain else None
        return writer

    def _adopt(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor, self._ours = path, descriptor, os.fstat(descriptor)
        self._place = str(path)  # for `os.stat`, which would ask the path for it at every flush
        self._chain, self._size, self._lines = "", self._ours.st_size, 0
        self._waiting = bytearray()

    @property
    def last(self) -> str:
        """The latest line of the log."""
        return self._last.decode()

    def record(self, step: Step | Mapping[str, Any], *, signed: bool = True) -> None:
        """Queue the record of a step, or one that no step made, with its place in the chain, for the next flush.

        signed: sign a yes of the user.
        """
        line = record_line(step) if isinstance(step, Step) else dump(step)
        if self.redaction is not None:
            line = self.redaction.line(line)
        if self._chain:
            signature = signature_of(line, self._chain) if signed and any(name in line for name in SIGNED) else ""
            self._last = f'{line[:-1]},"{CHAIN}":"{self._chain}"{signature}}}'.encode()
            self._chain = sha256(self._last).hexdigest()
        else:
            self._last = line.encode()
        self._waiting += self._last + b"\n"
        self._lines += 1

    def flush(self) -> None:
        """Pass all lines to the operating system; effects start after this. Raises LogError. Lines that could not be
        written are kept, and written first when there is room again.
        """
        if not self._late or len(self._waiting) > LARGE:
            try:
                self._hand_over()
            except OSError as error:
                raise _unwritable(self.path, error) from error

    def close(self) -> None:
        """Close the log; nothing can be appended any more. Raises LogError for a late one that cannot be written.
        Others have been flushed before.
        """
        if self._descriptor < 0:
            return
        try:
            self._hand_over()
        except (OSError, LogChanged) as error:  # a log that is not late has raised this before
            if self._late:
                raise _unwritable(self.path, error) from error
        finally:
            os.close(self._descriptor)
            self._descriptor = -1
            if self._end is not None:
                self._end.close()

    def _hand_over(self) -> None:
        """Write the queued lines. Raises LogChanged unless our path has the file that we write, unchanged."""
        if not self._waiting:
            return
        if S_ISREG(self._ours.st_mode):
            try:
                there = os.stat(self._place)
            except FileNotFoundError:
                raise LogChanged(f"the log {self.path} is gone; the run cannot go on without it") from None
            if (there.st_ino, there.st_dev) != (self._ours.st_ino, self._ours.st_dev):
                raise LogChanged(f"the log {self.path} was replaced by another file; the run cannot go on")
            if there.st_size != self._size:
                raise LogChanged(f"the log {self.path} was written by another process; the run cannot go on")
        while self._waiting:
            count = os.write(self._descriptor, self._waiting)
            self._size += count
            del self._waiting[:count]
        if self._end is not None:
            self._end.note(self._lines, self._chain)


def reopen(path: str | os.PathLike[str]) -> tuple[LogWriter, RecordedRun]:
    """Open a log to append to it, locked; a torn last line is cut off. Raises LogError."""
    path = Path(path)
    descriptor = _opened(path)
    try:
        lock(descriptor, path)
        recorded = read_log(path)
        if recorded.torn:
            os.ftruncate(descriptor, path.read_bytes().rfind(b"\n") + 1)
        elif not path.read_bytes().endswith(b"\n"):
            os.write(descriptor, b"\n")
    except OSError as error:
        os.close(descriptor)
        raise _unwritable(path, error) from error
    except LogError:
        os.close(descriptor)
        raise
    return LogWriter.going_on(recorded, descriptor), recorded


def _opened(path: Path, how: int = 0) -> int:
    """Return the descriptor of a log; `how` os.O_CREAT makes it, and its folder if need be. Raises LogError."""
    try:
        if how and not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | how, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError | LogChanged) -> LogError:
    if isinstance(error, LogChanged):
        return error
    return LogError(f"cannot write the log {path}: {error.strerror}")
