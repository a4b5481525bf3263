"""Files while a command text is examined: what is written to them, what is copied, and what is run of it."""

from collections.abc import Callable

from constitution.discoveries import Discoveries
from constitution.effects import Effect
from constitution.paths import is_within
from constitution.shell.flow import Flow, Origin
from constitution.shell.walk import Walk
from constitution.special.later import scripts_of
from constitution.written import WrittenFiles
from constitution.zones import runs_later

__all__ = ["FileContents"]


class FileContents:
    """Knows the contents of files that the command text itself makes."""

    def __init__(self, discoveries: Discoveries) -> None:
        self.discoveries = discoveries
        self.written = WrittenFiles()
        self.substituted = 0
        self.remotes: dict[str, str] = {}  # of the repository, added by the command itself
        self.fetched: list[str] = []  # folders that were cloned or unpacked

    def wrote(self, target: str, flow: Flow, walk: Walk) -> None:
        """Take what a command printed into a file; what goes into a file that runs later is read as a script."""
        for path in self._absolute(target, walk):
            self.written.write(path, flow)
            if flow.origin is Origin.ENDLESS:
                self._endless(path, walk)
            if runs_later(path, self.discoveries.home):
                before = self.discoveries.invoked_by(())
                self.discoveries.placed(lambda path=path: self._placed(path, flow, walk))  # type: ignore[misc]
                self.discoveries.invoking = before

    def _endless(self, path: str, walk: Walk) -> None:
        if path.startswith("/dev/") and not path.startswith("/dev/shm"):
            says = "keep a processor busy without end"
            self.discoveries.found(Effect.EXHAUST, walk, program="the command", says=says)
        else:
            self.discoveries.found(Effect.FILL, walk, program="the command", says="fill the disk without end")

    def _placed(self, path: str, flow: Flow, walk: Walk) -> None:
        if flow.origin in (Origin.FETCHED, Origin.DECODED):
            self.discoveries.found(Effect.RUN_FETCHED_CODE, walk, program="the command")
        for script in scripts_of(path, flow.text) if flow.text else ():
            walk.nested(script)

    def copied(self, source: str, target: str, walk: Walk) -> None:
        """Note that a file gets the content of another."""
        for one, other in zip(self._absolute(source, walk), self._absolute(target, walk), strict=True):
            self.written.copy(one, other)

    def run(self, file: str, walk: Walk, read: Callable[[Flow], object]) -> None:
        """Have `read` what the command itself writes to a file that is run."""
        evidence = walk.evidence

        def later(flow: Flow) -> None:
            before, walk.evidence = walk.evidence, evidence
            read(flow)
            walk.evidence = before

        for path in self._absolute(file, walk):
            self.written.run(path, later)
            if self.written.recursive:
                self.written.recursive = False
                says = "start itself again and again"
                self.discoveries.found(Effect.RISKY_CODE, walk, program="the command", says=says)

    def started(self, file: str, walk: Walk) -> None:
        """Note that a file is started: it may lie in a folder whose content comes from elsewhere."""
        if self.is_fetched([file], walk):
            self.discoveries.found(Effect.RUN_FETCHED_CODE, walk, program="the command")

    def fetched_folder(self, folder: str, walk: Walk) -> None:
        """Note that what is in a folder comes from elsewhere."""
        self.fetched.extend(self._absolute(folder, walk))

    def is_fetched(self, words: list[str], walk: Walk) -> bool:
        """Tell whether one of the words, as a path, lies in a folder whose content comes from elsewhere."""
        if not self.fetched:
            return False
        paths = [path for word in words for path in self._absolute(word.removeprefix("-C"), walk)]
        return any(is_within(path, folder) for path in paths for folder in self.fetched)

    def of(self, file: str, walk: Walk) -> Flow:
        """Return what the command itself wrote to a file, if that is one known text; else only the file's name."""
        contents = [flow for path in self._absolute(file, walk) for flow in self.written.contents(path)]
        return contents[0] if len(contents) == 1 else Flow(Origin.FILE, names=(file,))

    def substitute(self, flow: Flow) -> str:
        """Return the name of the file that stands for what a process substitution prints."""
        self.substituted += 1
        path = f"/dev/fd/{63 - (self.substituted - 1) % 50}"
        self.written.write(path, flow)
        return path

    def _absolute(self, word: str, walk: Walk) -> list[str]:
        return [self.discoveries.resolved.get(path, path) for path in self.discoveries.absolute(word, walk)]
