"""Live display of a run: text, actions, diffs, output, refusals and progress; or b-threads as lanes."""

import difflib
import re
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.cli.screen import MARGIN, Screen, Tone, cut, visible, visible_lines, wrapped
from agent.history.playback import Shadow
from agent.page.model import MARKS, PageModel
from agent.page.wording import action_of, counted, ending, lasted, told
from agent.page.wording import answered as answered_with
from agent.projections.state import BackgroundProcess, StateTracker, Totals
from agent.tools.files import edited
from agent.vocabulary.calls import ToolCall, background_mark
from agent.vocabulary.encoding import to_record
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffStarted,
    CallAnswered,
    GateRejected,
    InferenceFailed,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SnapshotRequested,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import CUT_OFF, Usage
from bp import BProgram, BThread, Event, Step
from constitution import Action

HEAD, TAIL = 8, 4  # lines of a result that are shown
NOTE = re.compile(r"\[.*\]$")  # remarks of a tool beside the output: the file of the rest, the state of a process
LONGEST_NOTE = 4  # lines
LONGEST_DIFF = 60  # lines
LARGEST_COMPARED = 1_000_000  # bytes
TOO_LONG = (
    "the conversation is longer than this model takes: --option context_tokens=N begins a run that stays below N "
    "tokens, /undo in chat goes back to before the last task"
)
HALF = "the model's answer was cut off: this is not the whole of it"
BY_RULE = "allowed by a rule of yours, without a question"
LIVE = 3  # lines of a tool's output that are shown while it runs
TOLD = (
    "stop_asked",
    "abort_asked",
    "deadline_reached",
    "summary_requested",
    "summary_failed",
    "approval_answered",
    "action_changed",
    "snapshot_taken",
    "snapshot_failed",
    "sandbox_lifted",
    "gate_rejected",
    "run_continued",
    "inference_failed",
    "backoff_started",
)
"""The kinds of events that are shown in the words of `agent.page.wording`."""

TONES: dict[str, Tone] = {"refused": "refused", "question": "system"}


def question_of(asked: ApprovalAsked) -> str:
    """Return why the user is asked, one reason per line, and whether the command would stay."""
    return asked.question + ("\nit would stay in the background" if background_mark(asked.call.arguments) else "")


def excerpt(text: str, width: int, rest: str = "") -> list[str]:
    """Return the first and last lines of a result, at most `width` columns wide; `rest` names the whole."""
    lines = visible_lines(text.rstrip("\n"))
    if len(lines) > HEAD + TAIL + 1:
        lines = [*lines[:HEAD], f"… {len(lines) - HEAD - TAIL:,} more lines{rest}", *lines[-TAIL:]]
    fitted = (
        wrapped(cut(line, LONGEST_NOTE * width), width) if NOTE.match(line) else [cut(line, width)] for line in lines
    )
    return [part for parts in fitted for part in parts]


def changes(call: ToolCall, action: Action) -> list[str]:
    """Return what an edit or a write would change, as the lines of a diff; none for other calls, or on failure."""
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
    except (OSError, ValueError, TypeError, KeyError, ToolError):  # the call itself will report it
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
    """Return whether the text of a run with this status is an error instead of an answer."""
    return status in ("failed", "aborted")


def spent(turns: int, calls: int, usage: Usage) -> str:
    """Return the usage of a run."""
    tokens = ("about " if usage.is_estimate else "") + counted(usage.tokens, "token")
    cost = [] if usage.cost is None else [f"${usage.cost:.4f}"]
    return ", ".join([counted(turns, "turn"), counted(calls, "call"), *([tokens] if usage.tokens else []), *cost])


ANSWERING, WAITING = "the model answers", "waiting, to ask again"
ACTIVITIES: Mapping[type[Event], str] = {
    InferenceRequested: ANSWERING,
    SummaryRequested: "the model summarizes",
    SnapshotRequested: "the workspace is kept before it may change",
    BackoffStarted: WAITING,
    **dict.fromkeys((ToolFinished, ApprovalAsked, RunEnded), ""),
}
"""The activity that an event begins, besides tools; an empty one: none."""

SILENCE = 20.0  # seconds of silence until the user is told


class Progress:
    """The status line of a run; `totals` are those of its conversation, `now` gives seconds."""

    def __init__(self, totals: Totals, now: Callable[[], float] = time.monotonic) -> None:
        """Begin without an activity."""
        self._now, self._totals = now, totals
        self._begun = now()
        self._activity = ""
        self._since = self._heard = now()

    def fold(self, event: Event) -> None:
        """Record an event."""
        if isinstance(event, PromptGiven):
            self._begun = self._now()
        activity = event.call.tool if isinstance(event, ToolStarted) else ACTIVITIES.get(type(event))
        if activity is not None:
            self._activity = activity
            self._since = self._heard = self._now()

    def text(self) -> str:
        """Return the line; empty without an activity."""
        if not self._activity:
            return ""
        used, now = self._totals.usage, self._now()
        tokens = used.input_tokens + used.output_tokens
        parts = [f"turn {self._totals.turns + (self._activity in (ANSWERING, WAITING))}"]
        parts.append(f"{visible(self._activity)} ({now - self._since:.0f} s)")
        if self._activity == ANSWERING and now > self._heard + SILENCE:
            parts.append(f"nothing came for {now - self._heard:.0f} s, Ctrl-C aborts")
        parts += [f"{tokens:,} tokens"] if tokens else []
        parts.append(f"{now - self._begun:.0f} s in all")
        return " · ".join(parts)

    def hear(self) -> None:
        """Note that a piece of the model's answer came."""
        self._heard = self._now()


class Display:
    """Shows the steps of a run; give `show` to an agent as its `on_step`, `stream` and `output` as its other listeners.

    totals, tracker: those of the agent, which fold a step before it is shown here. Invariant: output of a call is below
    the line that names the call, also when calls run side by side.
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
        """Make a display on `screen`. attempts: how often the model is asked for one answer; 0 when that is unknown."""
        self._attempts = attempts
        self._screen, self._totals, self._tracker = screen, totals, tracker
        self._shows_final_text = shows_final_text
        self._running: Sequence[BackgroundProcess] = ()  # in the background, before the step that is shown
        self._text = ""  # the last answer without calls: the final text, unless the run continues
        self._turn = 0  # the one whose title was shown last
        self._failure = self._reason = ""  # of the last inference
        self._streamed = ""  # the shown part of the model's text since it was asked
        self._calls: dict[str, ToolCall] = {}  # calls that were not answered yet
        self._named = ""  # the call whose line was shown last, if nothing was shown since
        self._compared: set[str] = set()  # calls whose diff was shown
        self._told: set[str] = set()
        self._output: deque[str] = deque([""], maxlen=LIVE + 1)  # the last lines that running tools printed
        self.last_result = ""  # of a tool, whole

    def show(self, step: Step) -> None:
        """Show a step if it matters to users; most do not."""
        event = step.event
        self._show_model(event)
        self._show_call(event)
        if isinstance(event, RunContinued | RunEnded):
            is_final = isinstance(event, RunEnded) and event.text == self._text and not is_error(event.status)
            if not is_final and not self._shows_final_text:  # it was held back
                self._say(self._text)
            self._failure, self._text = self._text or self._failure, ""
        if event.name in TOLD:
            label, sort, texts = told(event, attempts=self._attempts)
            for text in texts:
                if event.name != "snapshot_taken" or text not in self._told:  # which is alike for many
                    self._screen.labelled(label, text, TONES.get(sort, "system"))
                    self._told.add(text)
        if isinstance(event, RunEnded):
            self._show_end(event)
        self._running = self._tracker.state.background

    def stream(self, text: str) -> None:
        """Take a piece of the model's text, if the screen can stream."""
        if self._screen.streams:
            piece = text if self._streamed else text.lstrip()
            self._streamed += piece
            self._screen.piece("agent", piece, "agent")

    def output(self, text: str) -> None:
        """Take a piece of the output of a running tool."""
        first, *others = text.replace("\r", "\n").split("\n")
        self._output[-1] += first
        self._output.extend(others)

    def clear_output(self) -> None:
        """Forget the output of tools: a call has ended."""
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

    def take_up(self, step: Step) -> None:
        """Record a step of an earlier run without showing it."""
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
            case AnswerCommitted():
                self._calls |= {call.id: call for call in event.calls}
                self._screen.end_of_text("agent", "agent")
                self._text = "" if event.calls else event.message.text
                if event.calls or self._shows_final_text:
                    self._say(event.message.text)

    def _show_call(self, event: Event) -> None:
        if isinstance(event, ProposedAction | ApprovalAsked | ApprovalAnswered | GateRejected | ToolFinished):
            self._name(event.call)
        match event:
            case ActionDescribed():
                self._show_changes(event.call, changes(event.call, event.facts))
            case ToolFinished():
                self._show_result(event)
            case CallAnswered():
                call = self._calls.pop(event.call, None)
                self._compared.discard(event.call)
                if event.outcome not in ("ran", "rejected"):
                    if call is not None:
                        self._name(call)
                    self._screen.labelled(*answered_with(event.outcome, event.result.text), "refused")

    def _show_end(self, ended: RunEnded) -> None:
        used = self._totals.usage
        took = spent(self._totals.turns, self._totals.tool_starts, used)
        self._title("end")
        self.system(f"{ending({'status': ended.status, 'reason': ended.reason})} after {took}")
        for process in (process for process in self._running if process.until == "run"):
            self.system(f"{process.id} ends with the run: {process.command}")
        if ended.text and is_error(ended.status) and ended.text != self._failure:
            self._screen.labelled("error", ended.text, "refused")
        if ended.status == "failed" and self._reason == "context_length_exceeded":
            self.system(TOO_LONG)
        if ended.reason in CUT_OFF:
            self.system(HALF)

    def _say(self, text: str) -> None:
        if text.strip() and not self.has_streamed(text):
            self._screen.markdown("agent", text.strip(), "agent")

    def _iteration(self) -> str:
        state = self._tracker.state
        if state.objective is None:
            return f"turn {self._turn}"
        return f"iteration {state.iteration}" + (f" of {state.max_iterations}" if state.max_iterations else "")

    def _name(self, call: ToolCall) -> None:
        """Show which call the next lines are about, unless the line above does."""
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

    def _show_result(self, finished: ToolFinished) -> None:
        self.clear_output()
        result = finished.result
        self.last_result = result.text
        if result.is_error:  # the advice is at its end
            for line in excerpt(result.text, 10 * self._screen.width):
                for part in wrapped(line, self._screen.width - MARGIN - 2):
                    self._screen.line(f"{'':{MARGIN}}│ {part}".rstrip(), "output")
        elif finished.call.id not in self._compared:
            self._show_excerpt(finished)
        tone: Tone = "refused" if result.is_error else "good"
        how = "error" if result.is_error else "done"
        took = f" in {lasted(result.duration)}" if result.duration else ""  # unknown if it was cut short
        self._screen.line(f"{'':{MARGIN}}{how}{took}", tone)

    def _show_excerpt(self, finished: ToolFinished) -> None:
        is_diff = "\n@@ -" in f"\n{finished.result.text}"
        rest = "; /show prints all" if self._screen.beside is not None else "; all of it is in the log"
        text = _as_list(finished) or finished.result.text
        for line in excerpt(text, self._screen.width - MARGIN - 2, rest):
            self._screen.line(f"{'':{MARGIN}}│ {line}".rstrip(), tone_of_diff(line) if is_diff else "output")

    def _title(self, text: str) -> None:
        self._named = ""
        self._screen.line(f"── {text} ".ljust(self._screen.width, "─"), "title")


BOXES = {"completed": "[x]", "in_progress": "[>]"}


def _as_list(finished: ToolFinished) -> str:
    """Return the tasks of a todo list, a line each; nothing for other results."""
    todos = finished.call.arguments.get("todos")
    if finished.call.tool != "todowrite" or not isinstance(todos, list | tuple):
        return ""
    known = [todo for todo in todos if isinstance(todo, Mapping)]
    return "\n".join(f"{BOXES.get(str(todo.get('status')), '[ ]')} {todo.get('content', '')}" for todo in known)


# B-threads as lanes: a row for each event, a column for each b-thread, from its first deed on.

SIGNS = {letter: sign for letter, sign, _, _ in MARKS}
SIGN_TONES: Mapping[str, Tone] = {"x": "alarm", "q": "system", "w": "question", "b": "question"}
TEXT_TONES: Mapping[str, Tone] = {
    "person": "question", "agent": "agent", "call": "action", "refused": "refused", "question": "question",
    "end": "title",
}  # fmt: skip
TEXT_LINES = 5  # of one text, at most
NARROW = 100  # columns; on narrower screens the lanes are closer


class Lanes:
    """Draws the steps of a run as they happen; give `show` to an agent as its `on_step`.

    brief: only events with a text for users, and that text.
    """

    def __init__(self, screen: Screen, bthreads: Sequence[BThread], *, brief: bool = False) -> None:
        self._screen = screen
        self._brief = brief
        self._shadow = Shadow(lambda listeners: BProgram(*bthreads, listeners=listeners))
        self._model = PageModel()
        self._named = 0  # lanes whose name was shown
        self._blank = " " if screen.width >= NARROW else ""

    def show(self, step: Step) -> None:
        """Show a step."""
        parts = len(self._model.parts)
        self._model.take(self._shadow.take(to_record(step)))
        row, told = self._model.rows[-1], self._model.parts[parts:]
        if self._brief and (not told or told[0]["label"] == "told"):  # the refusal is just above
            return
        names = list(self._model.lanes)
        for lane in range(self._named, max([self._named, *(mark[0] + 1 for mark in row["marks"])])):
            self._screen.line(f"{self._bars()}╷ {visible(names[lane])}", "output", whole=True)
            self._named = lane + 1
        self._draw(row, told)

    @staticmethod
    def legend(screen: Screen) -> None:
        """Show the meaning of the signs."""
        screen.labelled("", "   ".join(f"{sign} {meaning}" for _, sign, _, meaning in MARKS), "system")

    def _bars(self) -> str:
        return f"│{self._blank}" * self._named

    def _draw(self, row: dict[str, Any], told: Sequence[dict[str, Any]]) -> None:
        letters = [[letter for at, letter, *_ in row["marks"] if at == lane] for lane in range(self._named)]
        label, text = (told[0]["label"], told[0]["text"]) if told else (row["name"], row["of"])
        tone: Tone = TEXT_TONES.get(told[0]["kind"].partition(" ")[0], "output") if told else "output"
        if any("x" in each for each in letters):
            tone = "alarm"
        lines = self._lines(text, told, max(self._screen.width - len(f"{self._bars()} {label:10} "), 12))
        signs, paint = "".join(map(self._sign, letters)), self._screen.painted
        self._screen.line(signs + paint(f" {label:10} {next(lines, '')}", tone), whole=True)
        for line in lines:
            lit: Tone = "refused" if line.startswith("-") else "good" if line.startswith("+") else tone
            self._screen.line(f"{paint(self._bars(), 'output')} {'':10} {paint(line, lit)}".rstrip(), whole=True)

    def _sign(self, letters: Sequence[str]) -> str:
        """Return the sign of a lane: of several marks, the first in the table."""
        letter = min(letters, key=list(SIGNS).index, default="")
        return self._screen.painted(SIGNS.get(letter, "│"), SIGN_TONES.get(letter, "output")) + self._blank

    @staticmethod
    def _lines(text: str, told: Sequence[dict[str, Any]], room: int) -> Iterator[str]:
        """Yield the lines of a row, cut to fit: the first ones of a text, the changed ones of a file."""

        def wrap(line: str) -> list[str]:
            return textwrap.wrap(line, room, drop_whitespace=False, break_on_hyphens=False) or [""]

        texts = [text, *(part["text"] for part in told[1:])]
        lines = [part for each in texts for line in visible_lines(each.strip("\n")) for part in wrap(line)]
        yield from lines[:TEXT_LINES]
        if len(lines) > TEXT_LINES:
            yield f"… {len(lines) - TEXT_LINES} more lines"
        yield from (line[:room] for part in told for line in part.get("diff", ()) if line[:1] in "+-")
