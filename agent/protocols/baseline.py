"""Constitution only: what every other protocol is compared with. No model judges, nothing is asked twice.

Source: the constitution of S3, as preset `gated` has it.
"""

from agent.presets.judging import Judge
from agent.threads.judging import by_constitution
from bp import BThread
from constitution import POLICIES

__all__ = ["constitution_only"]


def constitution_only(policy: str = "default") -> BThread:
    """Refuse what a policy of the constitution denies; a person decides about what it wants asked."""
    return by_constitution(Judge(POLICIES[policy]))
