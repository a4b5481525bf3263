"""What was found about a command text: findings, each once, and the leak that two of them make together."""

from collections.abc import Callable, Mapping

from constitution.effects import Effect, Finding
from constitution.paths import is_within
from constitution.phrases import PHRASES
from constitution.shell.walk import Walk
from constitution.verdict import Evidence
from constitution.zones import UNKNOWN, is_private, resolve

__all__ = ["Discoveries"]

SHOWS = frozenset({Effect.SHOW_ENVIRONMENT, Effect.SHOW_SECRETS, Effect.TAKE_KEYS, Effect.SHOW_PERSONAL})

READS = frozenset({Effect.READ, Effect.READ_TREE})

GETS_OUT = frozenset(
    {
        Effect.GIVE_SHELL,
        Effect.RUN_FETCHED_CODE,
        Effect.FORK_BOMB,
        Effect.EXHAUST,
        Effect.UPLOAD,
        Effect.LEAK,
        Effect.REMOTE_SHELL,
        Effect.DATABASE_LOSS,
        Effect.CLOUD_LOSS,
    }
)
"""What a command in a container does to others than the container."""


class Discoveries:
    """Collects findings. `resolved` maps absolute lexical paths to where links lead."""

    def __init__(self, start: str, home: str, resolved: Mapping[str, str]) -> None:
        self.start = start
        self.home = home
        self.resolved = resolved
        self.findings: dict[Finding, None] = {}
        self.words: dict[str, None] = {}  # every path that was asked about
        self.production = False  # a variable says that programs work on what people use
        self.placing = False  # what is read is put where it runs at every start
        self.inside = False  # a container that is thrown away: only what gets out of it counts
        self.invoking: tuple[str, ...] = ()  # the command of the call itself that is being examined
        self._private: Evidence | None = None  # where something private is read
        self._sends: Evidence | None = None  # where something goes to another machine

    def report(self, finding: Finding) -> None:
        """Add a finding."""
        self.findings[finding] = None

    def found(self, effect: Effect, walk: Walk, *, program: str = "", path: str | None = None, says: str = "") -> None:
        """Add a finding about the command that `walk` is at; a path is a word, resolved in every possible folder."""
        if self.inside and effect not in GETS_OUT:
            return
        if effect is Effect.DELETE and path is not None and self._are_many(path, walk):
            effect, says = Effect.DELETE_TREE, "delete everything that is {path}"
        says = says or PHRASES.get(effect, "")
        self._watch(effect, path, walk)
        if path is None:
            said = says.replace("{path}", "something")
            self.report(Finding(effect, "", said, program, walk.evidence, self.invoking))
            return
        shown = says.replace("{path}", path.replace(UNKNOWN, "…") or "''")
        for absolute in self.absolute(path, walk):
            self.words[absolute] = None
            where = self.resolved.get(absolute, absolute)
            self.report(Finding(effect, where, shown, program, walk.evidence, self.invoking))
            if self.placing and effect in (Effect.EXECUTE, Effect.SEARCH_PATH):
                says = shown.replace("run ", "have ") + " run at every start" if effect is Effect.EXECUTE else shown
                self.report(Finding(Effect.PERSIST, where, says, program, walk.evidence, self.invoking))

    def _are_many(self, path: str, walk: Walk) -> bool:
        """Tell whether a word stands for any number of files elsewhere: `~/*`, or what a search there found."""
        if "*" not in path:
            return False
        return not any(is_within(absolute, self.start) for absolute in self.absolute(path, walk))

    def placed(self, act: Callable[[], object]) -> None:
        """Act; what is run meanwhile runs at every start."""
        before, self.placing = self.placing, True
        act()
        self.placing = before

    def absolute(self, word: str, walk: Walk) -> list[str]:
        """Return the paths that a word may name, before links are followed."""
        return [resolve(word, cwd=cwd, home=self.home) for cwd in walk.scope.cwd]

    def sent(self, evidence: Evidence | None) -> None:
        """Note that something is sent there; with something private read anywhere in the text it is a leak."""
        self._sends = self._sends or evidence
        if self._private is not None and self._sends is not None:
            evidence, self._sends = self._sends, None
            says = "send what is private to another machine"
            self.report(Finding(Effect.LEAK, "", says, "the command", evidence))

    def _watch(self, effect: Effect, path: str | None, walk: Walk) -> None:
        """Remember whether something private is read, and whether something is sent: together they are a leak."""
        if effect in SHOWS or (effect in READS and path is not None and self._is_private(path, walk)):
            self._private = self._private or walk.evidence
            self.sent(self._sends)
        elif effect is Effect.UPLOAD:
            self.sent(walk.evidence)

    def _is_private(self, path: str, walk: Walk) -> bool:
        """Tell whether what is read is a secret, or a whole home folder, or one of its hidden ones."""
        if is_private(path):
            return True
        return any(
            is_within(self.home, absolute)
            or absolute.startswith((f"{self.home}/.", "/root", "/etc/s", "/home/*", "/Users/*"))
            for absolute in self.absolute(path, walk)
            if not is_within(absolute, self.start)
        )

    def invoked_by(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Take what is found from here on as done by this command, or, without one, by none; return whose it was."""
        before, self.invoking = self.invoking, argv
        return before
