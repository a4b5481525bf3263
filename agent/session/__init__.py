"""A conversation with a model: agents and their runs, approvals, subagents, and resuming a log."""
