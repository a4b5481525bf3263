"""The state tracker of autonomous work (S1 2.2, 3.2): what is pursued, and what the world looks like now.

What it reads of a tool, beside the facts of the gate: `details` of `tool_finished`. All keys are optional.

    command    text: the command that ran; else the one that the gate saw
    exit_code  int or None
    terminal   "open" or "closed": the persistent terminal after this call; one that was never open is not told
    cwd        text: the working directory in the terminal, while it is open
    modified   list of texts: files that were written; else the paths that the gate saw being written or deleted
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import evolve, frozen

from agent.vocabulary.events import ActionDescribed, AnswerCommitted, CallAnswered, PromptGiven, RunEnded, ToolFinished
from bp import Event

__all__ = ["Command", "State", "StateTracker", "told_to_model", "told_to_user"]

LONGEST_OUTPUT = 500  # characters of a command's output (S1 3.2)
LONGEST_TEXT = 500  # characters of a prompt or an objective: the conversation has them whole
MOST_FILES = 20  # that are named


@frozen
class Command:
    """A command that ran: its text, what came of it, and how it ended (None: it did not end by itself)."""

    text: str
    output: str = ""
    exit_code: int | None = None


@frozen
class State:
    """Where a run stands. `objective` is None before one is taken; then `iteration` counts the answers of the run.

    terminal: "open" or "closed" if there was one. response: the last thing that the agent said in words.
    """

    user_prompt: str = ""
    objective: str | None = None
    iteration: int = 1
    max_iterations: int | None = None
    terminal: Literal["open", "closed"] | None = None
    cwd: str | None = None
    last_command: Command | None = None
    files_modified: tuple[str, ...] = ()
    response: str = ""
    is_over: bool = True


class StateTracker:
    """The state, folded from the events of a run; each run begins anew, except for the terminal."""

    def __init__(self, max_iterations: int | None = None, objective_tool: str = "pursue_objective") -> None:
        """Track with the limit that iterations have, and the name of the tool by which an objective is taken."""
        self._limit = max_iterations
        self._objective_tool = objective_tool
        self._described: dict[str, ActionDescribed] = {}
        self.state = State(max_iterations=max_iterations)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def _prompted(self, prompt: PromptGiven) -> None:
        now = self.state
        self.state = State(prompt.text, None, 1, self._limit, now.terminal, now.cwd, is_over=False)

    def _committed(self, answer: AnswerCommitted) -> None:
        said = answer.message.text.strip() or self.state.response
        self.state = evolve(self.state, iteration=self.state.iteration + 1, response=said)

    def _take_description(self, described: ActionDescribed) -> None:
        self._described[described.call.id] = described

    def _answered(self, answered: CallAnswered) -> None:
        self._described.pop(answered.call, None)

    def _ended(self, _: RunEnded) -> None:
        self.state = evolve(self.state, is_over=True)

    def _take_result(self, finished: ToolFinished) -> None:
        if finished.call.tool == self._objective_tool:
            self._take_objective(finished)
            return
        details, described = finished.details, self._described.get(finished.call.id)
        state = self.state
        if (command := _command(finished, described)) is not None:
            state = evolve(state, last_command=command)
        if details.get("terminal") == "open":
            state = evolve(state, terminal="open", cwd=details.get("cwd"))
        elif details.get("terminal") == "closed" and state.terminal == "open":
            state = evolve(state, terminal="closed", cwd=None)
        modified = () if finished.is_error and "modified" not in details else _modified(details, described)
        files = tuple(dict.fromkeys((*state.files_modified, *modified)))
        self.state = state if files == state.files_modified else evolve(state, files_modified=files)

    def _take_objective(self, finished: ToolFinished) -> None:
        if not finished.is_error and self.state.objective is None:
            given = finished.call.arguments
            prompt = str(given.get("user_prompt") or self.state.user_prompt)
            self.state = evolve(self.state, user_prompt=prompt, objective=str(given.get("objective", "")), iteration=1)


_FOLDS: dict[type, Callable[[StateTracker, Any], None]] = {
    PromptGiven: StateTracker._prompted,
    AnswerCommitted: StateTracker._committed,
    ActionDescribed: StateTracker._take_description,
    ToolFinished: StateTracker._take_result,
    CallAnswered: StateTracker._answered,
    RunEnded: StateTracker._ended,
}


def _command(finished: ToolFinished, described: ActionDescribed | None) -> Command | None:
    seen = None if described is None else described.facts.command
    text = finished.details.get("command", seen)
    if not isinstance(text, str) or not text:
        return None
    code = finished.details.get("exit_code")
    return Command(text, finished.result, code if isinstance(code, int) else None)


def _modified(details: Mapping[str, Any], described: ActionDescribed | None) -> tuple[str, ...]:
    if "modified" in details:
        return tuple(str(path) for path in details["modified"] or ())
    uses = () if described is None else described.facts.paths
    return tuple(use.resolved for use in uses if use.access in ("write", "delete"))


# In words.


def told_to_model(state: State) -> str | None:
    """Return the state block (S1 3.2, 6.4), or None when no objective is pursued."""
    if state.objective is None or state.is_over:
        return None
    of = "" if state.max_iterations is None else f" of {state.max_iterations}"
    lines = [
        f"[You are in an agentic loop: iteration {state.iteration}{of}.",
        f"User prompt: {_line(state.user_prompt)}",
        f"Objective: {_line(state.objective)}",
        *_terminal(state),
        *_files(state),
    ]
    return "\n".join(lines) + "]"


def told_to_user(state: State) -> str:
    """Return what a run that did not complete leaves behind: its partial results."""
    taken = state.iteration - 1
    pursued = [] if state.objective is None else [f"Objective: {_line(state.objective)}"]
    command = [] if state.last_command is None else _last_command(state.last_command)
    return "\n".join([*pursued, f"Iterations: {taken}", *_files(state), *command])


def _terminal(state: State) -> list[str]:
    if state.terminal != "open":
        return ["Terminal: closed"] if state.terminal == "closed" else []
    command = [] if state.last_command is None else _last_command(state.last_command)
    return [f"Terminal: open, in {state.cwd or 'an unknown directory'}", *command]


def _last_command(command: Command) -> list[str]:
    code = "did not exit by itself" if command.exit_code is None else f"exit code {command.exit_code}"
    output = _cut(command.output.strip())
    return [f"Last command: {_line(command.text)} ({code})", *([f"Its output: {output}"] if output else [])]


def _files(state: State) -> list[str]:
    if not state.files_modified:
        return []
    more = len(state.files_modified) - MOST_FILES
    named = ", ".join(state.files_modified[-MOST_FILES:])
    return [f"Files modified: {named}" + (f", and {more} more" if more > 0 else "")]


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


def _cut(output: str) -> str:
    """Keep the beginning and, longer, the end, where errors stand."""
    if len(output) <= LONGEST_OUTPUT:
        return output
    head = LONGEST_OUTPUT // 5
    return f"{output[:head]} … {output[head + 3 - LONGEST_OUTPUT :]}"
