"""A conversation with a model: agents and their runs, approvals, subagents, and going on with a log."""
