"""Draw lots from a seed. The n-th lot for a key is the same whatever else is drawn, so that runs can be paired."""

from hashlib import blake2b
from itertools import accumulate

from agent.effects.evidence import MakeEffect
from agent.session.agent import Agent
from agent.vocabulary.events import AbortAsked, DeadlineReached
from agent.vocabulary.questions import ChanceDrawn, ChanceRequested
from bp.runner import Broken, Effect

__all__ = ["chance", "draw"]


def chance(seed: int = 0) -> MakeEffect:
    """Return what makes the effect of `chance_requested`."""

    def make(agent: Agent) -> Effect:
        async def lot(requested: ChanceRequested) -> ChanceDrawn:
            drawn = sum(isinstance(heard, ChanceDrawn) and heard.key == requested.key for heard in agent.journal.heard)
            return ChanceDrawn(requested.key, draw(seed, requested.key, drawn + 1, requested.weights))

        return Effect(
            on=ChanceRequested,
            run=lot,
            outcome=(ChanceDrawn,),
            broken=first_lot,
            until=lambda _: AbortAsked | DeadlineReached,
        )

    return make


def draw(seed: int, key: str, number: int, weights: tuple[float, ...]) -> int:
    """Return the lot. Raises ValueError for weights that are no proportions."""
    if not weights or min(weights) < 0 or sum(weights) <= 0:
        raise ValueError(f"weights of {key!r} must be at least 0, and one of them above: {weights!r}")
    digest = blake2b(f"{seed}|{key}|{number}".encode(errors="surrogatepass"), digest_size=8).digest()
    level = int.from_bytes(digest) / 2**64 * sum(weights)
    return next((lot for lot, end in enumerate(accumulate(weights)) if level < end), len(weights) - 1)


def first_lot(requested: ChanceRequested, broken: Broken) -> ChanceDrawn:
    """Return the outcome of a lot that cannot be drawn: the first, by which protocols do the more careful thing."""
    return ChanceDrawn(requested.key, 0)
