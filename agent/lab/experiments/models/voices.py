"""The real models of an episode, by role: kept, paced, asked again when that may help; and what became of asking them.

    desk       of a process: which models there are, and how often each role may be asked
    voices     of an episode: what was asked in it, what that cost, and whether somebody could not be reached

Models of the loop are asked again by the loop, which logs it; monitors and auditors here. A model that cannot be
reached, or whose key is wrong, says nothing about a protocol: such an episode is left out, and counted. A conversation
that the provider refuses (400, 413, 422) is the agent's own doing.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field

from agent.lab.experiments.models.calling import CachedModel
from agent.lab.experiments.models.pacing import Pace, PacedModel
from agent.lab.experiments.plans.endpoints import ModelPlan
from agent.lab.experiments.shelf.spending import Ledger, MoneyUsedUp, Spent, note_spent
from agent.models.model import Model, ModelError
from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import Usage

__all__ = ["Desk", "ModelsFailed", "Voices"]

IN_THE_LOOP = ("agent", "trusted", "editor")
ATTEMPTS = 4
OF_THE_AGENT = (400, 413, 422)
"""Statuses that say something about the request, not about the server."""


class ModelsFailed(AgentError):
    """A model of the experiment could not be asked."""


class Desk:
    """What the episodes of a process share. `environ` holds addresses and keys, `per_minute` is by role.

    money: how many US dollars the experiment may cost.
    """

    def __init__(
        self,
        folder: Path,
        per_minute: Mapping[str, float] = {},
        environ: Mapping[str, str] | None = None,
        money: float | None = None,
    ):
        self.folder, self.ledger = folder, Ledger(folder, money)
        self._environ = os.environ if environ is None else environ
        self._paces = {role: Pace(folder / "paces" / role, rate) for role, rate in per_minute.items()}
        self._models: dict[tuple[str, ModelPlan], Model] = {}

    def model(self, role: str, plan: ModelPlan) -> Model:
        """Return the model of a role, paced. Raises ModelError, ScriptError."""
        if plan.is_scripted:
            return plan.made(self._environ)
        if (role, plan) not in self._models:
            import openai  # noqa: F401 - half a second, which must not pass between a turn and its request

            made, pace = plan.made(self._environ), self._paces.get(role)
            self._models[role, plan] = PacedModel(made, pace) if pace else made
        return self._models[role, plan]


@define
class Voices:
    """The models of one episode. `seed` is what its draws depend on, `here` its folder, `episode` its key."""

    desk: Desk
    seed: str
    here: str = ""
    episode: str = ""
    _kept: list[tuple[str, CachedModel]] = field(factory=list)

    def model(self, role: str, plan: ModelPlan) -> Model:
        """Return the model of a role for this episode. Raises ModelError, ScriptError."""
        model = self.desk.model(role, plan)
        if plan.is_scripted:
            return model
        kept = CachedModel(
            model,
            self.desk.folder / "answers",
            seed=self.seed,
            here=self.here,
            parameters=plan.asked_with,
            price=plan.price,
            attempts=1 if role in IN_THE_LOOP else ATTEMPTS,
            before=self.desk.ledger.check,
            after=self._note,
        )
        self._kept.append((role, kept))
        return kept

    @property
    def nominal(self) -> Usage:
        """What all answers cost, kept ones included."""
        return sum((model.nominal for _, model in self._kept), Usage())

    @property
    def actual(self) -> Usage:
        """What was asked for now."""
        return sum((model.actual for _, model in self._kept), Usage())

    @property
    def asked(self) -> Spent:
        """What servers were asked for now: the call that crosses a limit is counted like any other."""
        return Spent.of(sum(model.asked for _, model in self._kept), self.actual)

    def _note(self, requests: int, taken: Usage) -> None:
        note_spent(self.desk.folder, self.episode, Spent.of(requests, taken))

    def check(self) -> None:
        """Raise ModelsFailed when a model could not be asked, and OSError when its answer could not be kept.

        Raises MoneyUsedUp when one was not asked because of that.
        """
        for role, failure in ((role, failure) for role, kept in self._kept for failure in kept.failures.values()):
            if isinstance(failure, OSError | MoneyUsedUp):
                raise failure
            if isinstance(failure, ModelError) and _is_of_the_server(failure):
                raise ModelsFailed(f"the model of the role {role!r} could not be asked: {failure}") from failure


def _is_of_the_server(failure: ModelError) -> bool:
    return failure.retryable or (failure.status is not None and failure.status not in OF_THE_AGENT)
