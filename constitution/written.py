"""Files that a command writes itself and then runs: their content is known as well as what goes through a pipe."""

from collections.abc import Callable

from constitution.shell.flow import Flow

__all__ = ["WrittenFiles"]

MANY = 8
"""Contents of one file, and runs of it, that are followed."""

Reader = Callable[[Flow], object]


class WrittenFiles:
    """What was written where, by absolute path. The order does not count: a loop may run first what it writes last."""

    def __init__(self) -> None:
        self._contents: dict[str, list[Flow]] = {}
        self._readers: dict[str, list[Reader]] = {}
        self._reading: set[str] = set()
        self.recursive = False  # whether a file runs itself

    def write(self, path: str, flow: Flow) -> None:
        """Note that `flow` goes into a file."""
        contents = self._contents.setdefault(path, [])
        if len(contents) < MANY and flow not in contents:
            contents.append(flow)
            for reader in list(self._readers.get(path, ())):
                self._read(path, reader, flow)

    def contents(self, path: str) -> tuple[Flow, ...]:
        """Return everything that went into a file."""
        return tuple(self._contents.get(path, ()))

    def copy(self, source: str, target: str) -> None:
        """Note that a file gets the content of another."""
        for flow in list(self._contents.get(source, ())):
            self.write(target, flow)

    def run(self, path: str, reader: Reader) -> None:
        """Note that a file is run: `reader` gets whatever was, or will be, written to it."""
        readers = self._readers.setdefault(path, [])
        if len(readers) < MANY:
            readers.append(reader)
            for flow in list(self._contents.get(path, ())):
                self._read(path, reader, flow)

    def _read(self, path: str, reader: Reader, flow: Flow) -> None:
        """Have a content read, unless it is being read already: a script may run itself."""
        if path in self._reading:
            self.recursive = True
        else:
            self._reading.add(path)
            reader(flow)
            self._reading.discard(path)
