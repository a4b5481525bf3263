"""What can go wrong in a tool, as one class for each thing that a caller would do differently.

All of these become error results in `Tool.run`: the model reads the message, so it names the cure.
"""

__all__ = ["CannotStart", "PathRefused", "ToolError"]


class ToolError(Exception):
    """A tool could not do what it was asked; the message is for the model."""


class PathRefused(ToolError, PermissionError):
    """A path that a tool may not touch: outside the allowed paths, denied, or not an ordinary file."""


class CannotStart(ToolError):
    """A process that never ran: no such program, no such directory, or arguments that no process can take."""
