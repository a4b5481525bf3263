"""Files that a script writes itself and then runs or copies: their content is known like that of a pipe."""

import re
from collections.abc import Callable, Iterable

from constitution.shell.scope import Flow, Origin
from constitution.tables import pattern
from constitution.zones import is_within

MANY = 8
"""The highest number of contents, and of runs, followed for one file."""

Reader = Callable[[Flow], object]


class Files:
    """Files that were written, by absolute path. Order is ignored: a loop may run a file before it writes it."""

    def __init__(self) -> None:
        self.remotes: dict[str, str] = {}  # remotes that the script itself added
        self.fetched: list[str] = []  # cloned or unpacked folders
        self.recursive = False  # files that are being read: a file may run itself
        self._contents: dict[str, list[Flow]] = {}
        self._readers: dict[str, list[Reader]] = {}
        self._reading: set[str] = set()
        self._substituted = 0

    def write(self, path: str, flow: Flow) -> None:
        """Record that `flow` goes into a file."""
        contents = self._contents.setdefault(path, [])
        if len(contents) < MANY and flow not in contents:
            contents.append(flow)
            for reader in list(self._readers.get(path, ())):
                self._read(path, reader, flow)

    def copy(self, source: str, target: str) -> None:
        """Record that a file gets the content of another."""
        for flow in list(self._contents.get(source, ())):
            self.write(target, flow)

    def run(self, path: str, reader: Reader) -> None:
        """Record that a file is run: `reader` gets all content written to it, before or after."""
        readers = self._readers.setdefault(path, [])
        if len(readers) < MANY:
            readers.append(reader)
            for flow in list(self._contents.get(path, ())):
                self._read(path, reader, flow)

    def _read(self, path: str, reader: Reader, flow: Flow) -> None:
        """Read a content, unless it is being read already: a script may run itself."""
        if path in self._reading:
            self.recursive = True
        else:
            self._reading.add(path)
            reader(flow)
            self._reading.discard(path)

    def of(self, file: str, paths: Iterable[str]) -> Flow:
        """Return the single known text that the script wrote to a file; else the file's name."""
        contents = [flow for path in paths for flow in self._contents.get(path, ())]
        return contents[0] if len(contents) == 1 else Flow(Origin.FILE, names=(file,))

    def is_fetched(self, paths: Iterable[str]) -> bool:
        """Return whether one of the paths lies in a downloaded folder."""
        return bool(self.fetched) and any(is_within(path, folder) for path in paths for folder in self.fetched)

    def substitute(self, flow: Flow) -> str:
        """Return the name of the file that stands for what a process substitution prints."""
        self._substituted += 1
        path = f"/dev/fd/{63 - (self._substituted - 1) % 50}"
        self.write(path, flow)
        return path


CRON_TIMES = pattern(r"^\s*(?:@\w+|(?:[\d*/,\-A-Za-z]+\s+){5})\s*(.*)$")
UNIT_LINE = pattern(r"(?m)^\s*Exec\w*\s*=\s*[-@:+!]*(.*)$")
CRON_FILE = pattern(r"/cron(\.d|tab)(/|$)|/cron/")
PLIST_WORDS = pattern(r"<string>(/[^<]*)</string>")
UNIT_FILE = pattern(r"\.(desktop|service|timer|socket|path|plist)$")


def scripts_of(path: str, text: str) -> list[str]:
    """Return the shell scripts in a file that runs later: the commands of a crontab or unit, or the whole text."""
    lines = text.replace("\\n", "\n")  # `echo` differs between shells
    if CRON_FILE.search(path):
        with_user = re.search(r"^/etc/cron", path) is not None
        jobs = [match[1] for line in lines.splitlines() if (match := CRON_TIMES.match(line))]
        return [job.partition(" ")[2] if with_user and " " in job else job for job in jobs]
    if UNIT_FILE.search(path):
        return UNIT_LINE.findall(lines) + PLIST_WORDS.findall(lines)
    return [text] if text == lines else [text, lines]
