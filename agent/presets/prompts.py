"""The system prompts of the presets, and what may stand in one."""

__all__ = ["PLACEHOLDERS", "SYSTEM_PROMPT", "can_be_filled_in"]

SYSTEM_PROMPT = """\
You are an agent that works on a task with tools, in the workspace {workspace}.
Your tools: {tools}. Relative paths start at the workspace; paths outside the allowed ones are refused.
Every call is judged before it runs. A call that is rejected did not happen: read why, and find another way or say so.
A command ends after {timeout:g} seconds unless you give a timeout, and output is cut at {output_limit} bytes.
You may take {max_iterations} turns. When the task is done, answer in plain text without calling a tool."""

PLACEHOLDERS = ("workspace", "tools", "timeout", "output_limit", "max_iterations")
"""What a system prompt may hold in braces."""


def can_be_filled_in(preset: object, attribute: object, prompt: str) -> None:
    """Raise ValueError for a system prompt that has other things in braces. A validator of attrs."""
    try:
        prompt.format_map(dict.fromkeys(PLACEHOLDERS, 1))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        places = ", ".join(f"{{{place}}}" for place in PLACEHOLDERS)
        raise ValueError(f"a system prompt may hold {places}; write other braces twice") from error
