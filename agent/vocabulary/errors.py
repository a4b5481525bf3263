"""What can break a run off from outside its b-threads; the engine's own errors are `bp.BProgramError`."""

__all__ = ["AgentError", "RunError"]


class AgentError(Exception):
    """The base of what goes wrong around an agent: logs, options, models, runs."""


class RunError(AgentError):
    """The log, a projection, or whoever looks on failed during a run; the message says who, the `__cause__` is it."""
