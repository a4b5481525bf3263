"""Defer on critical actions: what could do great harm is left to the trusted model, or to a person, whatever it scores.

Source: 2511.02997, where it holds against an adaptive red team that defeats resampling.
"""

from collections.abc import Callable

from agent.protocols.asking import (
    TRUSTED,
    TURN_OVER,
    allowed_by_person,
    another_draft,
    commitment,
    draft_given,
    ending_or,
)
from agent.protocols.reasons_of_protocols import NeedsTrust
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, InferenceRequested
from bp import BThreadBody, bthread, start, sync
from constitution import Level, Verdict

__all__ = ["ask_on_critical", "defer_on_critical", "is_admin"]

CRITICAL = Verdict(Level.ask, "critical", "critical action", explanation="this is a critical action")


def is_admin(call: ToolCall) -> bool:
    """Whether a call is of a tool that its author declares to be administration."""
    return call.category == "admin"


@bthread
def defer_on_critical(is_critical: Callable[[ToolCall], bool] = is_admin) -> BThreadBody:
    """Have the trusted model asked whenever a draft without trust has a critical call; no monitor is needed."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        if asked.role not in TRUSTED:
            yield start(defer(asked.draft, is_critical))


@bthread(name="defer_on_critical")
def defer(name: str, is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """Refuse one draft if it has a critical call, and have the trusted model give another one."""
    draft = yield from draft_given(name)
    if draft is not None and any(map(is_critical, draft.calls)):
        because = NeedsTrust()
        found = yield from another_draft("trusted", "trusted", refuse=commitment(draft), because=because)
        yield sync(refuse=commitment(draft), because=ending_or(because, found), wait_for=TURN_OVER)


@bthread
def ask_on_critical(is_critical: Callable[[ToolCall], bool] = is_admin) -> BThreadBody:
    """Have a person decide about every critical call."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if is_critical(described.call):
            yield start(ask(described.call))


@bthread(name="ask_on_critical")
def ask(call: ToolCall) -> BThreadBody:
    """Have a person decide about one call."""
    yield from allowed_by_person(call, CRITICAL)
