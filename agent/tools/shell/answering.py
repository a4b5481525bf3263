"""The answer to a command that has ended, or could not be run: in words, or as the envelope of S4."""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from agent.tools.process import Finished
from agent.tools.retention import Retained
from agent.tools.shell.interactive import is_interactive
from agent.tools.shell.observation import Observed, Session, compact
from agent.tools.shell.options import ShellOptions
from agent.tools.shell.telling import beside_the_exit_code, details_of, is_failure, tell
from agent.vocabulary.calls import ToolResult

__all__ = ["Answers", "Asked"]


@frozen
class Asked:
    """What was asked for: the command as the model gave it, where, and for how many seconds at most."""

    command: str
    cwd: str
    call_id: str
    seconds: float | None = None


@frozen(eq=False)
class Answers:
    """Gives the answers of the tool `name`; `session` counts for the envelope."""

    name: str
    options: ShellOptions
    session: Session = field(factory=Session)

    @property
    def in_envelopes(self) -> bool:
        """Whether answers are envelopes, those of failures too."""
        return self.options.form == "envelope"

    def of(self, asked: Asked, finished: Finished, output: Retained, notes: Sequence[str] = ()) -> ToolResult:
        """Return the answer for a command that has ended; `notes` are lines to add."""
        if self.in_envelopes:
            return self._envelope(asked, finished, notes)
        told = tell(finished, asked.seconds, self.options, notes)
        text = told.text if self.options.compact is None else compact(told.text, self.options.compact)
        more = output.details() if self.options.form == "details" else {}
        return evolve(told, text=text, details={**told.details, **more})

    def of_problem(self, asked: Asked, problem: str) -> ToolResult:
        """Return the envelope for a command that was not run."""
        self.session.calls += 1
        text = self.session.observe(self._about(asked, problem), compacted=self.options.compact)
        return ToolResult(text, is_error=True, details={"interactive": is_interactive(asked.command)})

    def _envelope(self, asked: Asked, finished: Finished, notes: Sequence[str]) -> ToolResult:
        self.session.calls += 1
        self.session.executed += 1
        observed = evolve(self._about(asked, ""), finished=finished, notes=(*beside_the_exit_code(finished), *notes))
        text = self.session.observe(observed, compacted=self.options.compact)
        details = {**details_of(finished), "interactive": observed.interactive}
        return ToolResult(text, is_error=is_failure(finished, self.options), details=details)

    def _about(self, asked: Asked, problem: str) -> Observed:
        tool = {"tool": self.name, "call_id": asked.call_id, "command": asked.command, "workdir": asked.cwd}
        return Observed(tool, is_interactive(asked.command), problem)
