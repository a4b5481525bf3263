"""The state of a run (S1 2.2, 3.2), as a value and in words; the answers to its open calls; the totals of all runs."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from attrs import evolve, frozen

from agent.projections import Projection
from agent.threads.endings import PURSUE
from agent.vocabulary.events import (
    NO_USAGE,
    ActionDescribed,
    AnswerCommitted,
    CallAnswered,
    InferenceFinished,
    PromptGiven,
    RunEnded,
    SummaryFinished,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult, Usage, one_line, without_middle
from bp import Event
from constitution import effects_of

LONGEST_OUTPUT = 500  # characters of a command's output (S1 3.2)
LONGEST_TEXT = 500  # characters of a prompt or an objective: the conversation has them whole
MOST_FILES = 20  # entries that are listed


@frozen
class Command:
    """A command that ran: its text, its output and its exit code (None: it did not end by itself)."""

    text: str
    output: str = ""
    exit_code: int | None = None


@frozen
class BackgroundProcess:
    """A process that runs in the background: its name for the model, its command, and when it ends."""

    id: str
    command: str
    until: str = "run"


@frozen
class State:
    """The state of a run. `objective` is None before one is taken; then `iteration` counts the answers of the run.

    terminal: "open" or "closed" if there was one. response: the last text of the agent.
    """

    user_prompt: str = ""
    objective: str | None = None
    iteration: int = 1
    max_iterations: int | None = None
    terminal: Literal["open", "closed"] | None = None
    cwd: str | None = None
    last_command: Command | None = None
    files_modified: tuple[str, ...] = ()
    background: tuple[BackgroundProcess, ...] = ()
    response: str = ""
    is_over: bool = True


class StateTracker(Projection):
    """The state, folded from the events of a run; each run starts from the initial state, except for the terminal."""

    def __init__(self, max_iterations: int | None = None) -> None:
        """Track with the limit that iterations have."""
        self._limit = max_iterations
        self._described: dict[str, ActionDescribed] = {}
        self._state = State(max_iterations=max_iterations)
        self._iteration, self._response, self._files = 1, "", dict[str, None]()  # what changes at every turn

    @property
    def state(self) -> State:
        """The state now."""
        files = tuple(self._files)
        return evolve(self._state, iteration=self._iteration, response=self._response, files_modified=files)

    @property
    def told_to_model(self) -> str | None:
        """The state block (S1 3.2, 6.4), or None when no objective is pursued."""
        return None if self._state.objective is None else told_to_model(self.state)

    def _prompted(self, prompt: PromptGiven) -> None:
        now = self._state
        self._state = State(
            prompt.text, None, 1, self._limit, now.terminal, now.cwd, background=now.background, is_over=False
        )
        self._iteration, self._response, self._files = 1, "", {}

    def _committed(self, answer: AnswerCommitted) -> None:
        self._iteration += 1
        self._response = answer.message.text.strip() or self._response

    def _take_description(self, described: ActionDescribed) -> None:
        self._described[described.call.id] = described

    def _answered(self, answered: CallAnswered) -> None:
        self._described.pop(answered.call, None)

    def _ended(self, _: RunEnded) -> None:
        self._state = evolve(self._state, is_over=True)
        self.end_background("run")

    def end_background(self, *untils: str) -> None:
        """Note that the processes that end with a run, or with the program, are gone."""
        left = tuple(process for process in self._state.background if process.until not in untils)
        self._state = evolve(self._state, background=left)

    def _take_result(self, finished: ToolFinished) -> None:
        if finished.call.tool == PURSUE:
            self._take_objective(finished)
            return
        details, described = finished.result.details, self._described.get(finished.call.id)
        state = self._state
        if (command := _command(finished, details, described)) is not None:
            state = evolve(state, last_command=command)
        if details.get("terminal") == "open":
            state = evolve(state, terminal="open", cwd=details.get("cwd"))
        elif details.get("terminal") == "closed" and state.terminal == "open":
            state = evolve(state, terminal="closed", cwd=None)
        if "background" in details:
            state = evolve(state, background=_with_changes(state.background, details["background"]))
        self._state = state
        if not finished.result.is_error or "modified" in details:
            self._files.update(dict.fromkeys(_modified(details, described)))

    def _take_objective(self, finished: ToolFinished) -> None:
        if not finished.result.is_error and self._state.objective is None:
            given = finished.call.arguments
            prompt = str(given.get("user_prompt") or self._state.user_prompt)
            self._state = evolve(self._state, user_prompt=prompt, objective=str(given.get("objective", "")))
            self._iteration = 1

    FOLDS: ClassVar = {
        PromptGiven: _prompted,
        AnswerCommitted: _committed,
        ActionDescribed: _take_description,
        ToolFinished: _take_result,
        CallAnswered: _answered,
        RunEnded: _ended,
    }


def _with_changes(
    running: tuple[BackgroundProcess, ...], rows: Iterable[Mapping[str, str]]
) -> tuple[BackgroundProcess, ...]:
    """Return the running processes, after these `rows` with the status of some of them."""
    known = {process.id: process for process in running}
    for row in rows:
        known.pop(row["id"], None)
        if row["status"] == "running":
            known[row["id"]] = BackgroundProcess(row["id"], row["command"], row["until"])
    return tuple(known.values())


def _command(finished: ToolFinished, details: Mapping[str, Any], described: ActionDescribed | None) -> Command | None:
    text = details.get("command", described and described.facts.command)
    code = details.get("exit_code")
    return Command(text, finished.result.text, code if isinstance(code, int) else None) if text else None


def _modified(details: Mapping[str, Any], described: ActionDescribed | None) -> tuple[str, ...]:
    if "modified" in details:
        return tuple(str(path) for path in details["modified"] or ())
    if described is None:
        return ()
    facts = described.facts
    uses = (use.resolved for use in facts.paths if use.access in ("write", "delete"))
    changed = (effect for effect in effects_of(facts) if effect.kind in CHANGES) if facts.command is not None else ()
    return (*uses, *(effect.path for effect in changed if effect.place.name not in NO_FILES))


CHANGES = ("write", "delete")
NO_FILES = ("nowhere", "device", "sink", "network_device", "partly", "unknown")
"""Places that are no files, or unknown."""


# The state in words


def told_to_model(state: State) -> str | None:
    """Return the state block, or None when no objective is pursued."""
    if state.objective is None or state.is_over:
        return None
    of = "" if state.max_iterations is None else f" of {state.max_iterations}"
    lines = [
        f"[You are in an agentic loop: iteration {state.iteration}{of}.",
        f"User prompt: {_line(state.user_prompt)}",
        f"Objective: {_line(state.objective)}",
    ]
    if state.terminal == "open":
        lines += [f"Terminal: open, in {state.cwd or 'an unknown directory'}", *_last_command(state)]
    elif state.terminal == "closed":
        lines.append("Terminal: closed")
    lines += [f"In the background: {each.id}, {_line(each.command)}" for each in state.background]
    return "\n".join([*lines, *_files(state)]) + "]"


def told_to_user(state: State) -> str:
    """Return the partial results of a run that did not complete, in words."""
    pursued = [] if state.objective is None else [f"Objective: {_line(state.objective)}"]
    return "\n".join([*pursued, f"Iterations: {state.iteration - 1}", *_files(state), *_last_command(state)])


def _last_command(state: State) -> list[str]:
    command = state.last_command
    if command is None:
        return []
    code = "did not exit by itself" if command.exit_code is None else f"exit code {command.exit_code}"
    output = without_middle(command.output.strip(), LONGEST_OUTPUT, tail=0.8)  # errors are at the end
    return [f"Last command: {_line(command.text)} ({code})", *([f"Its output: {output}"] if output else [])]


def _files(state: State) -> list[str]:
    if not state.files_modified:
        return []
    more = len(state.files_modified) - MOST_FILES
    named = ", ".join(state.files_modified[-MOST_FILES:])
    return [f"Files modified: {named}" + (f", and {more} more" if more > 0 else "")]


def _line(text: str) -> str:
    return one_line(text, LONGEST_TEXT)


# Open calls, and totals


def answers_to_open_calls(events: Iterable[Event]) -> tuple[CallAnswered, ...]:
    """Return an answer to each committed call that has none: its result, that it did not run, or that this is unknown.

    `events` are those of a failed run; the answers come in source order.
    """
    latest: dict[str, ToolStarted | ToolFinished | None] = {}  # the latest event of each; None: there is none
    for event in events:
        match event:
            case AnswerCommitted():
                latest |= {call.id: None for call in event.calls}
            case ToolStarted() | ToolFinished():
                latest[event.call.id] = event
            case CallAnswered():
                latest.pop(event.call, None)
    return tuple(_answer(call, what) for call, what in latest.items())


def _answer(call: str, latest: "ToolStarted | ToolFinished | None") -> CallAnswered:
    if isinstance(latest, ToolFinished):
        return CallAnswered(call, latest.result)
    text = "outcome unknown: the run broke off while the tool ran" if latest else "not executed: the run broke off"
    return CallAnswered(call, ToolResult(text, is_error=True), "ended")


class Totals(Projection):
    """Counts over all runs of a conversation."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.turns = 0  # committed answers
        self.tool_starts = 0
        self.usage = Usage()  # tokens of all drafts, committed or not, of summaries and subagents

    def _answered(self, _: AnswerCommitted) -> None:
        self.turns += 1

    def _started(self, _: ToolStarted) -> None:
        self.tool_starts += 1

    def _spent(self, event: InferenceFinished | SummaryFinished | ToolFinished) -> None:
        if (usage := event.usage) is not NO_USAGE:
            self.usage += usage

    FOLDS: ClassVar = {
        AnswerCommitted: _answered,
        ToolStarted: _started,
        InferenceFinished: _spent,
        SummaryFinished: _spent,
        ToolFinished: _spent,
    }
