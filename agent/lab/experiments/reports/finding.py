"""A finding that needs no model: when to audit the most suspicious of several draws, and when the least.

An attacker whose every draw looks honest, but who slips now and then (a draw with the score 1), is found by the most
suspicious draw: one slip of k is enough. Where there are no slips and the attack only scores somewhat higher than
honest work (Beta(alpha, 1) to U(0, 1)), the least suspicious draw finds more: it takes the noise away, and honest work
rarely has a high least score. In between lies a slip rate at which both find as much.
"""

from collections.abc import Callable, Sequence
from random import Random

from agent.lab.experiments.reports.drawing import COLORS, Plot
from agent.lab.measures.closed_forms import caught_by_least, caught_by_most
from agent.lab.measures.curves import rate_caught

__all__ = ["finding_figure", "simulated_noise", "simulated_slips", "tie"]

DRAWS = 4
EPISODES = 20_000
Curve = Callable[[float, float, int, float], float]
Pick = Callable[[Sequence[float]], float]


def simulated_slips(budget: float, slip: float, pick: Pick, *, n: int = EPISODES) -> float:
    """Return the share of attacks that is audited: each draw slips with probability `slip`, else looks honest."""
    return _simulated(budget, _slipping(slip, 1.0), pick, n)


def simulated_noise(budget: float, alpha: float, pick: Pick, *, n: int = EPISODES) -> float:
    """Return the share of attacks that is audited: each draw scores Beta(alpha, 1)."""
    return _simulated(budget, _slipping(0.0, alpha), pick, n)


def tie(budget: float, alpha: float, *, draws: int = DRAWS) -> float:
    """Return the slip rate from which on the most suspicious draw finds more.

    An attack's draw slips, or else scores Beta(alpha, 1); both shares have a closed form, their difference one root.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if caught_by_most(budget, alpha, draws, middle) < caught_by_least(budget, alpha, draws, middle):
            low = middle
        else:
            high = middle
    return high


def finding_figure(budget: float = 0.05, alpha: float = 4.0, n: int = EPISODES) -> str:
    """Return the plot: lines are closed forms, hollow points are simulations of `n` episodes each."""
    plot = Plot("how often a draw slips", f"share of attacks audited, {budget:.0%} of honest ones audited", x=(0, 0.5))
    curves: tuple[tuple[str, Curve, Pick, float], ...] = (
        ("most suspicious, only slips", caught_by_most, max, 1.0),
        ("least suspicious, only slips", caught_by_least, min, 1.0),
        (f"most suspicious, alpha {alpha:g}", caught_by_most, max, alpha),
        (f"least suspicious, alpha {alpha:g}", caught_by_least, min, alpha),
    )
    for color, (name, curve, pick, spread) in zip(COLORS[1:], curves, strict=False):
        plot.line([(step / 100, curve(budget, spread, DRAWS, step / 100)) for step in range(51)], color)
        plot.entry(name, color, hollow=True, at=(0.5, curve(budget, spread, DRAWS, 0.5)))
        for slip in (0.0, 0.1, 0.2, 0.3, 0.4):
            plot.point(slip, _simulated(budget, _slipping(slip, spread), pick, n), color, hollow=True)
    return plot.svg("which of several draws to audit")


def _slipping(slip: float, alpha: float) -> Callable[[Random], float]:
    return lambda chance: 1.0 if chance.random() < slip else float(chance.random() ** (1 / alpha))


def _simulated(budget: float, attack: Callable[[Random], float], pick: Pick, n: int) -> float:
    chance = Random(0)
    honest: list[float | None] = [pick([chance.random() for _ in range(DRAWS)]) for _ in range(n)]
    attacks: list[float | None] = [pick([attack(chance) for _ in range(DRAWS)]) for _ in range(n)]
    return rate_caught(budget, honest, attacks)
