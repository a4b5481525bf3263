"""Writing the log: appended as it happens, flushed before the effects of what was written."""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.log.encoding import dump, to_record
from agent.log.reading import LogError
from bp import Step

__all__ = ["LogWriter"]


class LogWriter:
    """An open log: locked while it is written, readable by its owner only."""

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        """Make a new log; its folder is made if need be.

        Raises LogError when there is something at `path` already: a log is never overwritten.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LogError(f"cannot write the log {self.path}: {error.strerror}") from error
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_size:
                raise LogError(f"the log {self.path} exists already; name another file, or remove it")
            self._write(dump(header))
            self.flush()
        except OSError as error:
            self.close()
            raise LogError(f"cannot write the log {self.path}: {error.strerror}") from error
        except LogError:
            self.close()
            raise

    def record(self, step: Step) -> None:
        """Append the record of a step."""
        self._write(dump(to_record(step)))

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record that no step made: how the run ended when the engine failed."""
        self._write(dump(record))
        self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system; the effects start after this."""
        self._file.flush()

    def close(self) -> None:
        """Close the log; nothing can be appended any more. What was to be kept has been flushed before."""
        with suppress(OSError):  # what could not be written is tried once more, and has been told of
            self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
