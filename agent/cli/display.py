"""A run as it happens, on a screen: agent text, actions, tool output, refusals and system messages, told apart.

-- turn 1 --------------------
agent    I look around.
action   ls -la
         | total 4
         ok, 12 ms
action   rm -rf /
refused  by b-thread by_constitution: rm would delete / recursively (rule delete_outside_workspace)
"""

from agent.calls import ToolCall
from agent.cli.screen import Screen, Tone, visible
from agent.cli.telling import action_of, excerpt, is_error, refused_by, spent
from agent.events import (
    AbortAsked,
    AnswerCommitted,
    ApprovalAnswered,
    BackoffStarted,
    CallAnswered,
    GateRejected,
    InferenceFailed,
    InferenceRequested,
    ProposedAction,
    RunContinued,
    RunEnded,
    StopAsked,
    ToolFinished,
)
from agent.projections import Totals
from bp import Event, Step

__all__ = ["Display"]


class Display:
    """Shows the steps of a run; give `show` to an agent as its `on_step`."""

    def __init__(self, screen: Screen, *, shows_final_text: bool = False) -> None:
        """Make a display on `screen`; the final text is left to others, unless it is wanted here."""
        self._screen = screen
        self._shows_final_text = shows_final_text
        self._totals = Totals()
        self._turn = 0  # the one whose title was shown last
        self._failure = ""  # of the last inference
        self._calls: dict[str, ToolCall] = {}  # those that were asked for and not answered yet

    def show(self, step: Step) -> None:
        """Show what a person wants to know of a step; most steps are not shown."""
        self._totals.fold(step.event)
        self._show_model(step.event)
        self._show_call(step.event)
        self._show_course(step.event)

    def take_up(self, step: Step) -> None:
        """Know a step that happened before, without showing it."""
        self._totals.fold(step.event)
        match step.event:
            case InferenceRequested():
                self._turn = self._totals.turns + 1
            case AnswerCommitted():
                self._calls |= {call.id: call for call in step.event.calls}
            case CallAnswered():
                self._calls.pop(step.event.call, None)

    def system(self, text: str) -> None:
        """Show a message of the system."""
        self._screen.labelled("system", text, "system")

    def _show_model(self, event: Event) -> None:
        match event:
            case InferenceRequested() if self._turn != self._totals.turns + 1:
                self._turn = self._totals.turns + 1
                self._title(f"turn {self._turn}")
            case InferenceFailed():
                self._failure = event.error
            case BackoffStarted():
                self.system(f"the model gave no answer, and is asked again: {self._failure}")
            case AnswerCommitted():
                self._calls |= {call.id: call for call in event.calls}
                self._show_text(event)

    def _show_call(self, event: Event) -> None:
        match event:
            case ProposedAction():
                self._show_action(event.call)
            case ApprovalAnswered():
                self.system(_decision(event))
            case GateRejected():
                for line in refused_by(event.refusals):
                    self._screen.labelled("refused", f"by {line}", "refused")
            case ToolFinished():
                self._show_result(event)
            case CallAnswered():
                call = self._calls.pop(event.call, None)
                if event.outcome not in ("ran", "rejected"):
                    self._show_unexecuted(call, event)

    def _show_course(self, event: Event) -> None:
        match event:
            case StopAsked():
                self.system("stop: what runs finishes, then the run ends")
            case AbortAsked():
                self.system("abort: everything ends now")
            case RunContinued():
                self.system("; ".join(("the run goes on", *refused_by(event.refusals))))
            case RunEnded():
                self._show_end(event)

    def _show_end(self, ended: RunEnded) -> None:
        used = self._totals.usage
        took = spent(self._totals.turns, self._totals.tool_starts, used.input_tokens + used.output_tokens)
        self._title("end")
        self.system(f"{ended.status} ({ended.reason}) after {took}")
        if ended.text and is_error(ended.status):
            self._screen.labelled("error", ended.text, "refused")

    def _show_text(self, answer: AnswerCommitted) -> None:
        text = answer.message.text.strip()
        is_final = not answer.calls
        if text and (self._shows_final_text or not is_final):
            self._screen.labelled("agent", text, "agent")

    def _show_action(self, call: ToolCall) -> None:
        self._screen.line(f"{'action':9}{visible(action_of(call))}", "action")

    def _show_unexecuted(self, call: ToolCall | None, answered: CallAnswered) -> None:
        if call is not None and answered.outcome == "invalid":
            self._show_action(call)
        self._screen.labelled("refused", answered.result, "refused")

    def _show_result(self, finished: ToolFinished) -> None:
        for line in excerpt(finished.result, self._screen.width - 13):
            self._screen.line(f"{'':9}│ {line}".rstrip(), "output")
        tone: Tone = "refused" if finished.is_error else "good"
        how = "error" if finished.is_error else "done"
        self._screen.line(f"{'':9}{how} in {finished.duration:,.0f} ms", tone)

    def _title(self, text: str) -> None:
        self._screen.line(f"── {text} ".ljust(self._screen.width, "─"), "title")


def _decision(answered: ApprovalAnswered) -> str:
    if answered.yes:
        return "approved"
    if not answered.present:
        return "not approved: nobody is there to ask"
    return f"not approved: {answered.text or 'the answer was no'}"
