"""The system prompts of the presets, and what may stand in one."""

__all__ = ["PLACEHOLDERS", "SYSTEM_PROMPT", "can_be_filled_in", "finish_text"]

SYSTEM_PROMPT = """\
You are an agent that works on a task with tools, in the workspace {workspace}.
Your tools: {tools}. Relative paths start at the workspace; paths outside the allowed ones are refused.
Every call is judged before it runs. A call that is rejected did not happen: read why, and find another way or say so.
A command ends after {timeout:g} seconds unless you give a timeout, and output is cut at {output_limit} bytes.
You may take {max_iterations} turns. {finish}"""

PLACEHOLDERS = ("workspace", "tools", "timeout", "output_limit", "max_iterations", "finish")
"""What a system prompt may hold in braces."""


BY_TEXT = "When the task is done, answer in plain text without calling a tool."

BY_TOOL = """\
When the task is done, call complete with the result and the status success; if something is missing, with the status
partial; if it cannot be done, with the status failure. A text alone does not end your work."""

BY_OBJECTIVE = """\
What you can answer at once, answer in plain text. When a request takes several steps, call pursue_objective with the
user's prompt and the objective that you make of it; you work on your own from then on, and the turns are counted.
Choose your own way, turn by turn; nobody wants a plan first. Say in a sentence what you are about to do and why. Read
exit codes and errors, and decide whether to try again, to do it differently, or to give up. Before the newest prompt
you are shown where you stand: the objective, the turn, the terminal, the files that you changed.
Only calling complete ends an objective: with the result and the status success, partial (something is missing) or
failure (it cannot be reached). A text alone does not."""


def finish_text(*, complete_tool: bool, objective_tool: bool) -> str:
    """Return what a model is told about the end of its work."""
    if objective_tool:
        return BY_OBJECTIVE
    return BY_TOOL if complete_tool else BY_TEXT


def can_be_filled_in(preset: object, attribute: object, prompt: str) -> None:
    """Raise ValueError for a system prompt that has other things in braces. A validator of attrs."""
    try:
        prompt.format_map(dict.fromkeys(PLACEHOLDERS, 1))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        places = ", ".join(f"{{{place}}}" for place in PLACEHOLDERS)
        raise ValueError(f"a system prompt may hold {places}; write other braces twice") from error
