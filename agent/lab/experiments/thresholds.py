"""Frozen thresholds: set on honest calibration episodes, once, and written with a digest.

A threshold that was set on anything else, or changed by hand, has another digest, and is refused.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from statistics import fmean

from attrs import asdict, field, frozen

from agent.lab.episodes.results import Row
from agent.lab.experiments.plan import Plan, threshold_name
from agent.lab.measures.intervals import tail_interval
from agent.lab.measures.thresholds import suspicion, threshold_at, unsupported
from agent.vocabulary.encoding import parsed
from agent.vocabulary.errors import AgentError


class FreezeError(AgentError):
    """Thresholds cannot be set, or were not set by `bpagent experiment freeze`."""


@frozen
class Frozen:
    """Thresholds by `monitor at budget`, with the number of calls and the episodes that they were set on.

    digest: by `digest_of`. realized: the share of the calibration above each threshold, if just computed. It is the
    budget or less, unless scores are missing: these are above every threshold.
    """

    digest: str
    thresholds: Mapping[str, float]
    calls: int
    episodes: tuple[str, ...]
    realized: Mapping[str, float] = field(factory=dict, eq=False)

    @property
    def spent(self) -> dict[str, str]:
        """The share of calls that each threshold refuses: of the calibration, and of new calls with an interval."""
        new = {name: tail_interval(round(share * self.calls), self.calls) for name, share in self.realized.items()}
        return {name: f"refuses {share:.1%}, of new ones {new[name].percent}" for name, share in self.realized.items()}


def digest_of(thresholds: Mapping[str, float], calls: int, episodes: Sequence[str]) -> str:
    """Return the digest of thresholds and their calibration."""
    text = json.dumps([dict(sorted(thresholds.items())), calls, sorted(episodes)])
    return blake2b(text.encode(), digest_size=10).hexdigest()


def freeze(plan: Plan, rows: Sequence[Row]) -> Frozen:
    """Return the thresholds of a plan's protocols, from honest calibration rows. Raises FreezeError.

    A budget is a share of the honest calls; for rules over episodes, of the honest episodes. Refusal is not randomized:
    `theta` alone is used, so that at most the budget is refused.
    """
    for row in rows:
        if row.attacks or row.split != "calibrate":
            told = f"{row.key} is {row.policy} in {row.split}"
            raise FreezeError(f"thresholds are set on honest calibration only; {told}")
    if others := plan.unmeasured():
        raise FreezeError(others[min(others)])
    ran = [row for row in rows if row.status == "ran"]
    scores, highest = [step.score for row in ran for step in row.steps], [row.highest for row in ran]
    if not scores:
        failed = [row.error for row in rows if row.status == "failed"]
        told = f"all {len(rows)} honest calibration episodes failed, the first because of {' '.join(failed[:1])}"
        cure = "there are no honest calibration episodes yet; run bpagent experiment FILE first"
        raise FreezeError(told if failed else cure)
    small = [unsupported(protocol.budget, len(scores)) for protocol in plan.protocols if protocol.budget]
    small += [unsupported(share, len(ran), "episodes") for share in plan.shares()]
    if refused := next(filter(None, small), ""):
        raise FreezeError(refused)
    budgets = {*plan.budgets, *(protocol.budget for protocol in plan.protocols if protocol.budget is not None)}
    wanted = [(threshold_name(plan.audit_with, budget), budget, scores) for budget in sorted(budgets)]
    wanted += [(threshold_name(plan.audit_with, share, "episodes"), share, highest) for share in plan.shares()]
    thetas = {name: min(threshold_at(share, honest).theta, 1.0) for name, share, honest in wanted}
    above = {name: fmean(suspicion(score) > thetas[name] for score in honest) for name, _, honest in wanted}
    frozen = (thetas, len(scores), tuple(row.key for row in rows))
    return Frozen(digest_of(*frozen), *frozen, above)


def write_frozen(path: Path, frozen: Frozen) -> None:
    """Write thresholds with their digest. Raises OSError."""
    kept = asdict(frozen, filter=lambda attribute, _: attribute.name != "realized")
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def read_frozen(path: Path) -> Frozen | None:
    """Return the thresholds in a file; None if there is none. Raises FreezeError for an invalid or changed file."""
    try:
        found = parsed(path.read_text(encoding="utf-8"), Frozen, "file")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        told = f"{path}: not a file of frozen thresholds: {error}"
        raise FreezeError(f"{told}; remove it, and freeze again") from error
    if found.digest != digest_of(found.thresholds, found.calls, found.episodes):
        raise FreezeError(f"{path}: the thresholds were changed since they were frozen; remove it, and freeze again")
    return found
