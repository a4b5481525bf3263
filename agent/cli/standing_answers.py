"""The answer `always`: what it adds to the user's rules, and that it holds for the rest of the run as well.

A rule in the file counts from the next run on, as the policy of a run never changes. For the rest of this one the
question is answered for the person, who is told so; the log has a question and its answer like any other.
"""

import shlex
from pathlib import Path

from agent.presets.options import OptionError
from agent.presets.user_rules import RULES_FILE, add_user_rule
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed
from bp import Event
from constitution import Action, CommandRule, Policy, grants_for, judge

__all__ = ["StandingAnswers", "says_always"]

CANNOT = "taken as yes for once: no rule can allow this always, because {why}"


def says_always(line: str) -> bool:
    """Whether a line answers a question with `always`."""
    return line.strip().lower() == "always"


class StandingAnswers:
    """What was answered with `always` under a policy. It sees the run's events, to know what each call would do."""

    def __init__(self, policy: Policy | None, file: str | Path = RULES_FILE) -> None:
        """Start without answers; rules are added to `file`."""
        self._policy = policy
        self._file = Path(file)
        self._described: tuple[str, Action] | None = None
        self._granted: tuple[CommandRule, ...] = ()

    def see(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, ActionDescribed):
            self._described = (event.call.id, event.facts)

    def cover(self, call: ToolCall) -> bool:
        """Tell whether an answer of this run allows a call that is asked about."""
        action = self._action_of(call)
        if action is None or self._policy is None or not self._granted:
            return False
        return judge(action, self._policy.with_commands(*self._granted)).allowed

    def add(self, call: ToolCall) -> str:
        """Allow a call from now on, as far as a rule can; return what there is to say about that."""
        action = self._action_of(call)
        if action is None or self._policy is None:
            return CANNOT.format(why="nothing is known about what it would do")
        grants = grants_for(action, self._policy)
        if not grants:
            return CANNOT.format(why="it is not a simple command that a rule of the policy asks about")
        try:
            for grant in grants:
                add_user_rule(grant, self._file)
        except (OptionError, OSError) as error:
            return CANNOT.format(why=f"{self._file} cannot be written ({error})")
        self._granted += grants
        said = "; ".join(f"{shlex.join(grant.argv)} ({grant.rule}, {grant.executable})" for grant in grants)
        return f"always allowed from now on: {said}\nwritten to {self._file}"

    def _action_of(self, call: ToolCall) -> Action | None:
        return self._described[1] if self._described is not None and self._described[0] == call.id else None
