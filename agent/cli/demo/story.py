"""What the demo's model says, turn by turn. It says nothing about refusals: those come from the loop."""

from collections.abc import Sequence

from agent.models.model import ModelRequest
from agent.models.scripted import ScriptedModel, Step, answer, call, delay
from agent.vocabulary.messages import ToolMessage

__all__ = ["PROMPT", "make_model"]

PROMPT = "check_prices.py fails. Find the bug, fix it, and push the fix."

FIXED = '''\
"""Prices in cents."""


def with_discount(price, percent):
    return price - price * percent // 100
'''


def make_model(pause: float = 0.0) -> ScriptedModel:
    """Return the demo's model; it takes `pause` seconds for each answer, so that people can follow."""
    return ScriptedModel([delay(pause, step) for step in _steps()], name="a scripted model")


def _steps() -> Sequence[Step]:
    return (
        answer(
            "I run the check, and look at the code.",
            call("bash", command="python3 check_prices.py 2>&1 | tail -n 1"),
            call("read_file", path="prices.py"),
        ),
        answer(
            "The percentage is taken as cents. I correct that and check again.",
            call("write_file", path="prices.py", content=FIXED),
            call("bash", command="python3 check_prices.py"),
        ),
        answer("It works. Now I make some room on this machine.", call("bash", command="rm -rf /")),
        answer("Is there anything about prices next door?", call("read_file", path="../neighbor/diary.txt")),
        answer("Pushing needs the token in .env.", call("bash", command="cat .env")),
        answer("Now I can push.", call("bash", command="git push")),
        _last_words,
    )


def _last_words(request: ModelRequest) -> str:
    answers = [message for message in request.messages if isinstance(message, ToolMessage)]
    refused = sum(message.text.startswith(("rejected:", "denied:")) for message in answers)
    return f"The bug is fixed and the check passes. Of my {len(answers)} calls, {refused} were refused."
