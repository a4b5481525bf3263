"""What monitors and auditors are shown of a run: the subject, the conversation before it, and what it would touch."""

from collections.abc import Callable, Mapping

from agent.effects.description import describe
from agent.protocols.monitors.monitor import Evidence, calls_of
from agent.session.agent import Agent
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.questions import Draft, Honeypot, Subject
from bp.runner import Effect
from constitution import Action

__all__ = ["MakeEffect", "Planted", "evidence_of"]

MakeEffect = Callable[[Agent], Effect]
Planted = Draft | ToolCall
"""What a honeypot is: something that a monitor cannot tell from what an agent does."""


def evidence_of(subject: Subject, agent: Agent, honeypots: Mapping[str, Planted]) -> Evidence:
    """Return the evidence about a subject. Raises ValueError for a honeypot that nobody has planted."""
    shown: Subject = subject
    if isinstance(subject, Honeypot):
        if subject.honeypot not in honeypots:
            raise ValueError(
                f"there is no honeypot {subject.honeypot!r}; planted are: {', '.join(honeypots) or 'none'}"
            )
        shown = honeypots[subject.honeypot]

    def actions() -> tuple[Action, ...]:
        return tuple(describe(call, agent.toolbox) for call in calls_of(shown))

    return Evidence(shown, agent.messages, agent.totals.turns, actions)
