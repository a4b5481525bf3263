"""The state tracker: what it reads of events, and how it is told."""

from typing import Any

from agent.projections.state import StateTracker, told_to_model, told_to_user
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, AnswerCommitted, PromptGiven, RunEnded, ToolFinished
from bp import Event
from constitution import Action, PathUse
from tests.agent.threads.loops import committed

PURSUE = ToolCall("p", "pursue_objective", {"user_prompt": "Go", "objective": "All"})


def tracked(*events: Event) -> StateTracker:
    tracker = StateTracker(25)
    for event in (PromptGiven("Go"), *events):
        tracker.fold(event)
    return tracker


def described(call: ToolCall, **facts: Any) -> ActionDescribed:
    return ActionDescribed(call, Action(call.tool, "write", "/w", **facts))


def result(call: ToolCall, text: str = "out", **details: Any) -> ToolFinished:
    return ToolFinished(call, text, details=details)


def test_iterations_are_counted_from_the_objective_on_and_each_run_begins_anew() -> None:
    tracker = tracked(committed(PURSUE), result(PURSUE), committed(), committed())
    assert (tracker.state.iteration, tracker.state.objective) == (3, "All")

    tracker.fold(RunEnded("limit", "max_iterations"))
    assert (tracker.state.iteration, tracker.state.objective) == (3, "All")  # still there to be told
    tracker.fold(PromptGiven("More"))
    assert (tracker.state.iteration, tracker.state.objective, tracker.state.user_prompt) == (1, None, "More")


def test_files_are_those_that_the_gate_saw_or_that_the_tool_names() -> None:
    write, read, shell = (ToolCall(name, name) for name in ("write", "read", "shell"))
    uses = (PathUse("a", "/w/a", "write"), PathUse("b", "/w/b", "read"), PathUse("c", "/w/c", "delete"))
    failed = ToolFinished(write, "no", is_error=True)
    events = (described(write, paths=uses), result(write), described(read, paths=uses[1:2]), result(read))
    tracker = tracked(*events, described(shell, command="make"), result(shell, modified=("/w/x", "/w/a")))

    assert tracker.state.files_modified == ("/w/a", "/w/c", "/w/x")
    assert tracked(described(write, paths=uses), failed).state.files_modified == ()


def test_the_last_command_is_the_one_that_the_gate_saw_or_that_the_tool_names() -> None:
    shell, terminal = ToolCall("s", "bash"), ToolCall("t", "terminal")
    tracker = tracked(described(shell, command="make"), result(shell, exit_code=2))
    assert tracker.state.last_command is not None
    assert (tracker.state.last_command.text, tracker.state.last_command.exit_code) == ("make", 2)

    tracker.fold(result(terminal, command="ls", exit_code=None))
    assert (tracker.state.last_command.text, tracker.state.last_command.exit_code) == ("ls", None)


def test_a_command_outside_of_a_terminal_is_for_the_user_and_not_for_the_model() -> None:
    """S1 3.2: directory and last command while a terminal is open; the rest stands in the conversation."""
    shell = ToolCall("s", "bash")
    state = tracked(result(PURSUE), described(shell, command="make"), result(shell, exit_code=2)).state

    assert "make" not in str(told_to_model(state))
    assert told_to_user(state).splitlines() == [
        "Objective: All",
        "Iterations: 0",
        "Last command: make (exit code 2)",
        "Its output: out",
    ]


def test_a_terminal_stays_open_over_runs_until_it_is_closed() -> None:
    terminal = ToolCall("t", "terminal")
    tracker = tracked(result(terminal, terminal="open", cwd="/w/src"), RunEnded("completed", "answered"))
    tracker.fold(PromptGiven("More"))
    assert (tracker.state.terminal, tracker.state.cwd) == ("open", "/w/src")

    tracker.fold(result(terminal, terminal="closed"))
    assert (tracker.state.terminal, tracker.state.cwd) == ("closed", None)


def test_a_terminal_that_was_never_open_is_not_told() -> None:
    once = result(ToolCall("t", "terminal"), terminal="closed", cwd="/w", command="ls", exit_code=0)

    assert tracked(once).state.terminal is None


def test_the_block_is_concise_whatever_it_is_given() -> None:
    tall = ToolCall("p", "pursue_objective", {"user_prompt": "u\n" * 2000, "objective": "o" * 5000})
    files = tuple(f"/w/{number}" for number in range(500))
    terminal = result(
        ToolCall("t", "terminal"), "z" * 100_000, terminal="open", cwd="/w", command="make", modified=files
    )
    block = str(told_to_model(tracked(result(tall), terminal).state))

    assert len(block) < 2500
    assert "and 480 more" in block


def test_there_is_no_block_before_an_objective_and_after_the_run() -> None:
    answer: AnswerCommitted = committed(text="Hello.")

    assert told_to_model(tracked(answer).state) is None
    assert told_to_model(tracked(result(PURSUE), RunEnded("completed", "success")).state) is None
