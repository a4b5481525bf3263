"""Display of a run as it happens: agent text, actions, diffs, tool output, refusals, and progress."""

import difflib
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.cli.screen import MARGIN, Screen, Tone, cut, visible, visible_lines, wrapped
from agent.effects.timers import LONGEST_ASKED, longest_before
from agent.projections.state import BackgroundProcess, StateTracker, Totals
from agent.tools.files.editing import edited
from agent.vocabulary.calls import ToolCall, background_mark
from agent.vocabulary.encoding import plain
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import (
    AbortAsked,
    ActionChanged,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffStarted,
    CallAnswered,
    DeadlineReached,
    GateRejected,
    InferenceFailed,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SandboxLifted,
    StopAsked,
    SummaryFailed,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import Usage
from bp import Event, Refusal, Refusals, Step
from constitution import Action, Verdict

HEAD, TAIL = 8, 4  # lines of a result that are shown
LONGEST_DIFF = 60  # lines
LARGEST_COMPARED = 1_000_000  # bytes
TOO_LONG = """\
the conversation is longer than this model takes: --option context_tokens=N begins a run that stays below N tokens,
/undo in chat goes back to before the last task"""
BY_RULE = "allowed by a rule of yours, without a question"
LIVE = 3  # lines of a tool's output that are shown while it runs
LONGEST_ARGUMENT = 60  # characters

SHELLS = ("bash", "run_command", "terminal")
"""Tools whose call is told as its command alone (S1 6.3)."""


def command_of(call: ToolCall) -> str:
    """Return what a call would do, whole: a shell command as proposed, else the tool with its arguments."""
    return _as_command(call, lambda value: json.dumps(value, ensure_ascii=False))


def action_of(call: ToolCall) -> str:
    """Return one line that shows a call: a shell command as proposed, long arguments by their length."""
    return _as_command(call, _abbreviated) + (background_mark(call.arguments) if call.tool in SHELLS else "")


def question_of(asked: ApprovalAsked) -> str:
    """Return why a person is asked, one reason per line, and whether the command would stay."""
    return asked.question + ("\nit would stay in the background" if background_mark(asked.call.arguments) else "")


def _as_command(call: ToolCall, shown: Callable[[object], str]) -> str:
    """Return a shell command, or a tool with its arguments; a short text as the only argument stands alone."""
    command = call.arguments.get("command")
    if call.tool in SHELLS and isinstance(command, str):
        return command
    match [*call.arguments.items()]:
        case [(_, str(text))] if text and len(text) < LONGEST_ARGUMENT:
            return f"{call.tool} {text}"
        case arguments:
            return " ".join([call.tool, *(f"{name}={shown(plain(value))}" for name, value in arguments)])


def _abbreviated(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < LONGEST_ARGUMENT else f"({len(value if isinstance(value, str) else text)} characters)"


def because(refusal: Refusal) -> str:
    """Return why a b-thread refused."""
    reason = refusal.because
    return f"{reason.explanation} (rule {reason.rule})" if isinstance(reason, Verdict) else str(reason)


def refused_by(refusals: Refusals) -> list[str]:
    """Return one line for each b-thread that refused: who, and why."""
    return sorted(f"b-thread {refusal.bthread}: {because(refusal)}" for refusal in refusals)


def excerpt(text: str, width: int, rest: str = "") -> list[str]:
    """Return the first and last lines of a result, at most `width` columns wide; `rest` says where all of it is."""
    lines = [cut(line, width) for line in visible_lines(text.rstrip("\n"))]
    if len(lines) <= HEAD + TAIL + 1:
        return lines
    return [*lines[:HEAD], f"… {len(lines) - HEAD - TAIL} more lines{rest}", *lines[-TAIL:]]


def changes(call: ToolCall, action: Action) -> list[str]:
    """Return what an edit or a write would change, as the lines of a diff; none for other calls, and where it fails."""
    arguments = call.arguments
    edits = [arguments] if "oldText" in arguments else arguments.get("edits")
    written = arguments.get("content")
    paths = [use.resolved for use in action.paths if use.access == "write"]
    if len(paths) != 1 or not (isinstance(written, str) or edits):
        return []
    try:
        file = Path(paths[0])
        if file.exists() and (not file.is_file() or file.stat().st_size > LARGEST_COMPARED):
            return []
        before = file.read_text("utf-8") if file.exists() else ""
        after = written if isinstance(written, str) else _edited(before, edits)
    except (OSError, ValueError, TypeError, KeyError, ToolError):  # the call itself will say so
        return []
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [visible(line.expandtabs(4)) for line in found][2:]


def _edited(text: str, edits: Any) -> str:
    """Return a text after edits, each an old and a new one. Raises ToolError."""
    for edit in edits:
        text, _ = edited(text, edit["oldText"], edit["newText"], "")
    return text


def tone_of_diff(line: str) -> Tone:
    """Return the color of a line of a diff."""
    return "added" if line.startswith("+") else "gone" if line.startswith("-") else "output"


def is_error(status: str) -> bool:
    """Return whether the text of a run with this status describes an error instead of the answer that was asked for."""
    return status in ("failed", "aborted")


def spent(turns: int, calls: int, usage: Usage) -> str:
    """Return what a run took."""
    tokens = ("about " if usage.is_estimate else "") + _count(usage.tokens, "token")
    cost = [] if usage.cost is None else [f"${usage.cost:.4f}"]
    return ", ".join([_count(turns, "turn"), _count(calls, "call"), *([tokens] if usage.tokens else []), *cost])


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lasted(milliseconds: float) -> str:
    """Return a duration as people read it: `340 ms`, `8.1 s`, `2 min 5 s`."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


ANSWERING, WAITING = "the model answers", "waiting, to ask again"
OF_THE_NEXT_TURN = (ANSWERING, WAITING)
SILENCE = 20.0  # seconds until it is said that nothing comes


class Progress:
    """The status line of a run; `totals` are those of its conversation, `now` gives seconds."""

    def __init__(self, totals: Totals, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing going on."""
        self._now, self._totals = now, totals
        self._begun = now()
        self._activity = ""
        self._since = self._heard = now()

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case PromptGiven():
                self._begun = self._now()
            case InferenceRequested():
                self._begin(ANSWERING)
            case SummaryRequested():
                self._begin("the model summarizes")
            case ToolStarted():
                self._begin(event.call.tool)
            case BackoffStarted():
                self._begin(WAITING)
            case ToolFinished():
                self._begin("")
            case ApprovalAsked() | RunEnded():
                self._begin("")

    def text(self) -> str:
        """Return the line; nothing when nothing goes on."""
        if not self._activity:
            return ""
        used, now = self._totals.usage, self._now()
        tokens = used.input_tokens + used.output_tokens
        parts = [f"turn {self._totals.turns + (self._activity in OF_THE_NEXT_TURN)}"]
        parts.append(f"{visible(self._activity)} ({now - self._since:.0f} s)")
        if self._activity == ANSWERING and now > self._heard + SILENCE:
            parts.append(f"nothing came for {now - self._heard:.0f} s, Ctrl-C aborts")
        parts += [f"{tokens:,} tokens"] if tokens else []
        parts.append(f"{now - self._begun:.0f} s in all")
        return " · ".join(parts)

    def hear(self) -> None:
        """Note that a piece of the model's answer came."""
        self._heard = self._now()

    def _begin(self, activity: str) -> None:
        self._activity, self._since = activity, self._now()
        self._heard = self._since


class Display:
    """Shows the steps of a run; give `show` to an agent as its `on_step`, `stream` and `output` for what comes between.

    totals, tracker: those of the agent, which have heard of a step before it is shown here.
    Invariant: what is shown of a call stands below the line that names it, also when calls run side by side.
    """

    def __init__(
        self,
        screen: Screen,
        totals: Totals,
        tracker: StateTracker,
        *,
        shows_final_text: bool = False,
        attempts: int = 0,
    ) -> None:
        """Make a display on `screen`; the final text is left to others, unless it is wanted here.

        attempts: how often the model is asked for one answer; 0 when that is not known.
        """
        self._attempts = attempts
        self._screen, self._totals, self._tracker = screen, totals, tracker
        self._shows_final_text = shows_final_text
        self._running: Sequence[BackgroundProcess] = ()  # in the background, before the step that is shown
        self._text = ""  # the last answer in words alone: the final text, unless the run goes on
        self._turn = 0  # the one whose title was shown last
        self._failure = self._reason = ""  # of the last inference
        self._streamed = ""  # what the model has said since it was asked, as far as it was shown
        self._calls: dict[str, ToolCall] = {}  # those that were asked for and not answered yet
        self._named = ""  # the call whose line was shown last, where nothing else was shown since
        self._compared: set[str] = set()  # calls whose diff was shown
        self._output: deque[str] = deque([""], maxlen=LIVE + 1)  # the last lines that running tools printed
        self._result = ""  # the last result of a tool, whole

    def show(self, step: Step) -> None:
        """Show what a person wants to know of a step; most steps are not shown."""
        self._show_model(step.event)
        self._show_call(step.event)
        self._show_course(step.event)
        if isinstance(step.event, RunEnded):
            self._show_end(step.event)
        self._running = self._tracker.state.background

    def stream(self, text: str) -> None:
        """Take a piece of the model's text as it comes, where there is a screen for that."""
        if self._screen.streams:
            piece = text if self._streamed else text.lstrip()
            self._streamed += piece
            self._screen.piece("agent", piece, "agent")

    def output(self, text: str) -> None:
        """Take a piece of what a running tool prints."""
        first, *others = text.replace("\r", "\n").split("\n")
        self._output[-1] += first
        self._output.extend(others)

    def clear_output(self) -> None:
        """Forget what tools printed: a call has ended."""
        self._output.clear()
        self._output.append("")

    def live(self) -> list[tuple[Tone, str]]:
        """Return the lines that still change: the model's unfinished paragraph, and the latest output of tools."""
        screen, columns = self._screen, self._screen.width - MARGIN
        rest = [part for line in visible_lines(screen.blocks.rest) for part in wrapped(line, columns)]
        label = "" if screen.has_begun_text or len(rest) > HEAD else "agent"
        text: list[tuple[Tone, str]] = [
            ("agent", f"{'' if number else label:{MARGIN}}{line}") for number, line in enumerate(rest[-HEAD:])
        ]
        printed = [line for line in self._output if line.strip()][-LIVE:]
        tail: list[tuple[Tone, str]] = [
            ("output", f"{'':{MARGIN}}│ {cut(visible(line.expandtabs(4)), columns - 3)}") for line in printed
        ]
        return (text if any(line.strip() for line in rest) else []) + tail

    def has_streamed(self, text: str) -> bool:
        """Return whether this text is the last one that was shown while the model wrote it."""
        return bool(text.strip()) and text.strip() == self._streamed.strip()

    @property
    def last_result(self) -> str:
        """The last result of a tool, whole."""
        return self._result

    def take_up(self, step: Step) -> None:
        """Take a step of an earlier run into account without showing it."""
        match step.event:
            case InferenceRequested():
                self._turn = self._totals.turns + 1
            case AnswerCommitted():
                self._turn = self._totals.turns
                self._calls |= {call.id: call for call in step.event.calls}
            case CallAnswered():
                self._calls.pop(step.event.call, None)

    def system(self, text: str) -> None:
        """Show a message of the system."""
        self._screen.labelled("system", text, "system")

    def about(self, call: ToolCall, text: str) -> None:
        """Show a message of the system about a call."""
        self._name(call)
        self.system(text)

    def _show_model(self, event: Event) -> None:
        if isinstance(event, InferenceRequested):
            self._streamed = ""
        match event:
            case InferenceRequested() if self._turn != self._totals.turns + 1:
                self._turn = self._totals.turns + 1
                self._title(self._iteration())
            case InferenceFailed():
                self._failure, self._reason = event.error, event.reason
                self._screen.end_of_text("agent", "agent")
                if self._streamed:
                    self.system("the answer broke off; what was shown of it does not count")
            case BackoffStarted():
                self.system(f"{self._failure}\n{self._next_attempt(event)}")
            case AnswerCommitted():
                self._calls |= {call.id: call for call in event.calls}
                self._screen.end_of_text("agent", "agent")
                self._show_text(event)

    def _show_call(self, event: Event) -> None:
        if isinstance(event, ProposedAction | ApprovalAsked | ApprovalAnswered | GateRejected | ToolFinished):
            self._name(event.call)
        match event:
            case ActionDescribed():
                self._show_changes(event.call, changes(event.call, event.facts))
            case ApprovalAnswered():
                self.system(_decision(event))
            case ActionChanged():
                self.system(f"changed since the question was put: {'; '.join(event.changes)}")
            case SandboxLifted():
                self.system(f"beyond the sandbox, for this call: {', '.join(event.rights)}")
            case GateRejected():
                for line in refused_by(event.refusals):
                    self._screen.labelled("refused", line, "refused")
            case ToolFinished():
                self._show_result(event)
            case CallAnswered():
                self._show_answered(event)

    def _show_course(self, event: Event) -> None:
        match event:
            case StopAsked():
                self.system("stop: what runs finishes, then the run ends; another stop ends it now")
            case AbortAsked():
                self.system("abort: everything ends now")
            case SummaryRequested():
                self.system("the conversation has grown long: its older part is summarized")
            case SummaryFailed():
                self.system(f"no summary could be made: {event.error}")
            case DeadlineReached():
                self.system(f"the time limit of {event.seconds:g} seconds was reached: everything ends now")
            case RunContinued():
                self._show_last_text()
                self.system("; ".join(("the run goes on", *refused_by(event.refusals))))
            case RunEnded():
                if event.text != self._text:
                    self._show_last_text()

    def _show_end(self, ended: RunEnded) -> None:
        used = self._totals.usage
        took = spent(self._totals.turns, self._totals.tool_starts, used)
        self._title("end")
        self.system(f"{ended.status} ({ended.reason}) after {took}")
        for process in (process for process in self._running if process.until == "run"):
            self.system(f"{process.id} ends with the run: {process.command}")
        if ended.text and is_error(ended.status):
            self._screen.labelled("error", ended.text, "refused")
        if ended.status == "failed" and self._reason == "context_length_exceeded":
            self.system(TOO_LONG)

    def _show_text(self, answer: AnswerCommitted) -> None:
        self._text = "" if answer.calls else answer.message.text
        if answer.calls or self._shows_final_text:
            self._say(answer.message.text)

    def _show_last_text(self) -> None:
        """Show a text that was not the last one after all."""
        if not self._shows_final_text:
            self._say(self._text)
        self._text = ""

    def _say(self, text: str) -> None:
        if text.strip() and not self.has_streamed(text):
            self._screen.markdown("agent", text.strip(), "agent")

    def _next_attempt(self, backoff: BackoffStarted) -> str:
        """Return which attempt follows a failed one, of how many, and when."""
        of = f" of {self._attempts}" if self._attempts else ""
        seconds = longest_before(backoff)
        if backoff.retry_after is None:
            bound = " at most"
        else:
            bound = ", the most that is waited" if seconds == LONGEST_ASKED else ""
        return f"attempt {backoff.attempt + 1}{of} follows in {seconds:g} s{bound}"

    def _iteration(self) -> str:
        state = self._tracker.state
        if state.objective is None:
            return f"turn {self._turn}"
        return f"iteration {state.iteration}" + (f" of {state.max_iterations}" if state.max_iterations else "")

    def _name(self, call: ToolCall) -> None:
        """Show which call the next lines are about, unless the line above says so."""
        if self._named != call.id:
            self._screen.labelled("action", action_of(call), "action")
            self._named = call.id

    def _show_changes(self, call: ToolCall, diff: Sequence[str]) -> None:
        if not diff:
            return
        self._name(call)
        self._compared.add(call.id)
        for line in diff[:LONGEST_DIFF]:
            self._screen.line(f"{'':{MARGIN}}{cut(line, self._screen.width - MARGIN)}", tone_of_diff(line))
        if len(diff) > LONGEST_DIFF:
            self._screen.line(f"{'':{MARGIN}}… {len(diff) - LONGEST_DIFF} more lines of this change", "output")

    def _show_answered(self, answered: CallAnswered) -> None:
        call = self._calls.pop(answered.call, None)
        self._compared.discard(answered.call)
        if answered.outcome in ("ran", "rejected"):
            return
        if call is not None:
            self._name(call)
        if answered.outcome == "skipped":
            self._screen.labelled("skipped", answered.result.removeprefix("skipped: "), "refused")
        else:
            self._screen.labelled("refused", answered.result, "refused")

    def _show_result(self, finished: ToolFinished) -> None:
        self.clear_output()
        self._result = finished.result
        if finished.is_error:  # its end is where the advice is
            for line in excerpt(finished.result, 10 * self._screen.width):
                for part in wrapped(line, self._screen.width - MARGIN - 2):
                    self._screen.line(f"{'':{MARGIN}}│ {part}".rstrip(), "output")
        elif finished.call.id not in self._compared:
            self._show_excerpt(finished)
        tone: Tone = "refused" if finished.is_error else "good"
        how = "error" if finished.is_error else "done"
        took = f" in {lasted(finished.duration)}" if finished.duration else ""  # it is not known of what was cut short
        self._screen.line(f"{'':{MARGIN}}{how}{took}", tone)

    def _show_excerpt(self, finished: ToolFinished) -> None:
        is_diff = "\n@@ -" in f"\n{finished.result}"
        rest = "; /show prints all" if self._screen.beside is not None else "; all of it is in the log"
        text = _as_list(finished) or finished.result
        for line in excerpt(text, self._screen.width - MARGIN - 2, rest):
            self._screen.line(f"{'':{MARGIN}}│ {line}".rstrip(), tone_of_diff(line) if is_diff else "output")

    def _title(self, text: str) -> None:
        self._named = ""
        self._screen.line(f"── {text} ".ljust(self._screen.width, "─"), "title")


MARKS = {"completed": "[x]", "in_progress": "[>]"}


def _as_list(finished: ToolFinished) -> str:
    """Return the tasks of a todo list, a line each; nothing for other results."""
    todos = finished.call.arguments.get("todos")
    if finished.call.tool != "todowrite" or not isinstance(todos, list | tuple):
        return ""
    known = [todo for todo in todos if isinstance(todo, Mapping)]
    return "\n".join(f"{MARKS.get(str(todo.get('status')), '[ ]')} {todo.get('content', '')}" for todo in known)


def _decision(answered: ApprovalAnswered) -> str:
    if answered.yes:
        return "approved"
    if not answered.present:
        return "not approved: no user is present to ask"
    return f"not approved: {answered.text or 'the answer was no'}"
