"""Writing the log: locked for one writer, without declared secrets, flushed before the effects of its events start."""

import fcntl
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any

from agent.log.chain import APPROVAL, CHAIN, End, new_seed, signature_of
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.redaction import Redaction
from agent.vocabulary.encoding import dump, record_line
from bp import Step


class LogChanged(LogError):
    """Another process has replaced, cut or written the log."""


class LogInUse(LogError):
    """Another process (or another agent of this one) writes the log; the message names the process."""


def lock(descriptor: int, path: Path, how: int = fcntl.LOCK_EX) -> None:
    """Lock an open log until it is closed, or its process ends. Raises LogInUse, and OSError.

    Not `filelock`, which locks another file, leaves it behind, and cannot name the holder.
    """
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogInUse(f"the log {path} is in use by {_holder(descriptor)}; wait for its end, or end it") from error


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
    holders = [words[4] for words in locks if words[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and _inode(words) == inode]
    return f"process {holders[0]}" if holders else "another process"


def _inode(words: list[str]) -> str:
    return words[5].rpartition(":")[2]


LARGE = 1_000_000  # bytes that a late log buffers

_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


class LogWriter:
    """An open log: locked while it is written, readable by its owner only. What was not flushed is not in the file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        redaction: Redaction | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Make a new log; its folder is made if need be. `redaction` masks every line. late: it is written when it is
        closed, and in large pieces before.

        Raises LogError when there is something at `path` already: a log is never overwritten.
        """
        self.path = Path(path)
        self._place = str(self.path)  # for `os.stat`, which would ask the path for it at every flush
        self._redaction = redaction
        self._waiting = bytearray()
        self._late = late
        self._chain, self._size, self._lines, self._last = "", 0, 0, b""
        self._end: End | None = None
        self._descriptor = _opened(self.path, os.O_CREAT)
        try:
            lock(self._descriptor, self.path)
            self._ours = os.fstat(self._descriptor)
            if self._ours.st_size:
                raise LogError(f"the log {self.path} exists already; name another file, or remove it")
            seed = new_seed()
            self._end = None if late else _end_of_log(self.path, seed)  # no tool sees a late log
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
        writer.path, writer._descriptor, writer._ours = recorded.path, descriptor, os.fstat(descriptor)
        writer._place = str(writer.path)
        writer._redaction, writer._waiting = None, bytearray()
        writer._last, writer._lines = b"", len(recorded.records) + 1
        writer._late, writer._chain, writer._size = False, recorded.chain, writer._ours.st_size
        writer._end = _end_of_log(recorded.path, recorded.header[CHAIN]) if recorded.chain else None
        return writer

    @property
    def last(self) -> str:
        """The latest line of the log."""
        return self._last.decode()

    def redact_with(self, redaction: Redaction | None) -> None:
        """Apply `redaction` to every further line."""
        self._redaction = redaction

    def record(self, step: Step | Mapping[str, Any]) -> None:
        """Queue the record of a step, or one that no step made, with its place in the chain, for the next flush."""
        line = record_line(step) if isinstance(step, Step) else dump(step)
        if self._redaction is not None:
            line = self._redaction.line(line)
        if self._chain:
            signed = signature_of(line, self._chain) if APPROVAL in line else ""
            self._last = f'{line[:-1]},"{CHAIN}":"{self._chain}"{signed}}}'.encode()
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
            os.ftruncate(descriptor, _end_of_last_line(path))
        elif not path.read_bytes().endswith(b"\n"):
            os.write(descriptor, b"\n")
    except OSError as error:
        os.close(descriptor)
        raise _unwritable(path, error) from error
    except LogError:
        os.close(descriptor)
        raise
    return LogWriter.going_on(recorded, descriptor), recorded


def _end_of_log(path: Path, seed: str) -> End | None:
    """Return the file with the end of a log, where one can be kept."""
    try:
        return End(path, seed)
    except (OSError, RuntimeError):
        return None


def _opened(path: Path, how: int = 0) -> int:
    """Return the descriptor of a log; `how` os.O_CREAT makes it, and its folder if need be. Raises LogError."""
    try:
        try:
            return os.open(path, _APPENDING | how, 0o600)
        except FileNotFoundError:
            if not how:
                raise
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, _APPENDING | how, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError | LogChanged) -> LogError:
    if isinstance(error, LogChanged):
        return error
    return LogError(f"cannot write the log {path}: {error.strerror}")


def _end_of_last_line(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1
