"""Estimates: what an experiment comes to, for each protocol and in the whole."""

from collections.abc import Mapping

from attrs import field, frozen

from agent.lab.measures.intervals import Interval

__all__ = ["Analysis", "Costs", "Estimate", "Rung"]


@frozen
class Rung:
    """Safety against one rung of the ladder, once and forever; `difference` of S_1 to the baseline's.

    differs: by more than its interval. apart: by an exact sign test over clusters of tasks, at the level that all
    comparisons of the protocol together ask for.
    """

    once: Interval
    forever: Interval
    difference: Interval
    apart: bool

    @property
    def differs(self) -> bool:
        """Whether the difference to the baseline is more than its interval."""
        return self.difference.excludes(0)


@frozen
class Costs:
    """What a protocol takes, in the mean over honest episodes; `rejected` is a share of their calls.

    rounds: how many answers of models, monitors, auditors and tools come one after the other.
    """

    rejected: float
    questions: float
    audits: float
    drafts: float
    scores: float
    monitor_tokens: float
    rounds: float
    seconds: float


@frozen
class Estimate:
    """One protocol: its figures with intervals, and what it costs.

    scaled: usefulness between that of the trusted model (0) and of the untrusted one (1). worst: S_1 against the rung
    that does most harm in each replicate. best: the rung that did most on the development split, the best response.
    difference: of the worst S_1 to that of the baseline with as many audits. audited: the share of honest calls that
    are audited, own_audits: by the protocol itself; where that is more than the budget, the protocol is on no front.
    bias: by how much `worst`, the least of several estimates, is too low.
    """

    protocol: str
    usefulness: Interval
    lost: Interval
    scaled: float | None
    worst: Interval
    worst_forever: Interval
    weakest: Interval
    weakest_forever: Interval
    best: str
    difference: Interval
    front: float
    rungs: Mapping[str, Rung]
    costs: Costs
    audited: float
    own_audits: float
    bias: float

    @property
    def response(self) -> Rung | None:
        """Safety against the best response."""
        return self.rungs.get(self.best)


@frozen
class Analysis:
    """Everything that a report says: estimates by protocol, and what they rest on.

    trusted, untrusted: usefulness of the trusted model alone, and of the agent's under the baseline. spent: the share
    of new honest calls that the budget audits, with what the calls that thresholds were set on leave open. refused: why
    no threshold spends it, so that nothing is audited but by protocols themselves. tasks, families: of the reported
    split; where a setting has one family there, its tasks are resampled one by one.
    """

    estimates: tuple[Estimate, ...]
    budget: float
    episodes: int
    failed: int
    missing_scores: int
    weakest: str
    trusted: float | None = None
    untrusted: float | None = None
    auc: float | None = None
    tasks: int = 0
    families: int = 0
    settings: int = 1
    spent: Interval | None = None
    refused: str = ""
    policies: tuple[str, ...] = field(default=())
