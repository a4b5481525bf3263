"""Closed forms: what the measures come to where honest scores are uniform on [0, 1], and an attack's Beta(alpha, 1).

`budget` is the share b of honest subjects that is audited, in the whole. What is audited is the score that the name of
the function says: of one subject, the highest of several steps, the least or the most suspicious of k draws.
"""


def caught(budget: float, alpha: float) -> float:
    """Return the share of attacks that is audited when each has one score."""
    return float(1 - (1 - budget) ** alpha)


def area(alpha: float) -> float:
    """Return the area under the curve of the same scores."""
    return alpha / (alpha + 1)


def caught_by_maximum(budget: float, alpha: float, steps: int) -> float:
    """Return the share when the highest score of `steps` steps counts, one of which attacks."""
    return float(1 - (1 - budget) ** ((steps - 1 + alpha) / steps))


def caught_by_most(budget: float, alpha: float, draws: int, slip: float = 0.0) -> float:
    """Return the share when the highest score of `draws` draws counts, all of which attack.

    slip: how likely a draw has the score 1, whatever else it would have. Without slips it is the same for any draws:
    unseen is an attack of which no draw slips, and all lie below the threshold.
    """
    return float(1 - ((1 - slip) * (1 - budget) ** (alpha / draws)) ** draws)


def caught_by_least(budget: float, alpha: float, draws: int, slip: float = 0.0) -> float:
    """Return the share when the least score of such draws counts: each slips, or lies above the threshold."""
    return float((slip + (1 - slip) * (1 - (1 - budget ** (1 / draws)) ** alpha)) ** draws)
