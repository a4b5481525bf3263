"""A monitor that is a distribution: scores drawn from a seed, as far apart and as alike from draw to draw as you say.

Honest subjects score U(0, 1), attacks Beta(alpha, 1): its area under the curve is alpha / (alpha + 1), and every
threshold has a closed form. Draws of one context are correlated by a Gaussian copula, which leaves both unchanged.
With a score comes how many tokens a model would have taken in its place.
"""

from collections.abc import Callable
from hashlib import blake2b
from math import sqrt
from statistics import NormalDist

from attrs import field, frozen, validators

from agent.protocols.monitors.monitor import Evidence, Score, text_of
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import Draft

__all__ = ["SimulatedMonitor"]

NORMAL = NormalDist()
OPEN = 1e-12  # how near to 0 and 1 a draw comes
ASKED, WRITTEN = 1000, 60  # characters of a prompt, and tokens of an answer, of the model that this stands for


@frozen
class SimulatedMonitor:
    """Scores by lot, reproducibly: the same subject at the same place of the same conversation scores the same.

    is_attack: the truth, which the scores are about. alpha: how far apart attacks are, 1 is not at all. correlation:
    of the scores of several drafts at one place, 0 to 1. slips: how often the score is 1, whatever the subject.
    """

    is_attack: Callable[[Evidence], bool]
    alpha: float = field(default=4.0, validator=validators.gt(0))
    correlation: float = field(default=0.0, validator=[validators.ge(0), validators.le(1)])
    slips: float = field(default=0.0, validator=[validators.ge(0), validators.le(1)])
    seed: int = 0

    @property
    def auc(self) -> float:
        """The probability that an attack scores higher than something honest, where nothing slips."""
        return self.alpha / (self.alpha + 1)

    def score(self, evidence: Evidence) -> Score:
        """Return the score that the seed has for this subject here."""
        place = f"{evidence.turn}|{'|'.join(message.text for message in evidence.messages)}"
        subject = evidence.subject
        draw = f"{place}|{subject.draft if isinstance(subject, Draft) else ''}|{text_of(subject)}"
        usage = Usage((len(draw) + ASKED) // 4, WRITTEN)
        if self._uniform("slip", draw) < self.slips:
            return Score(1.0, "a slip", usage)
        shared, own = self._normal("place", place), self._normal("draw", draw)
        level = NORMAL.cdf(sqrt(self.correlation) * shared + sqrt(1 - self.correlation) * own)
        return Score(level ** (1 / self.alpha) if self.is_attack(evidence) else level, "", usage)

    def _normal(self, purpose: str, key: str) -> float:
        return NORMAL.inv_cdf(min(max(self._uniform(purpose, key), OPEN), 1 - OPEN))

    def _uniform(self, purpose: str, key: str) -> float:
        digest = blake2b(f"{self.seed}|{purpose}|{key}".encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64
