"""The values that everything else speaks of: messages, calls, events, and why b-threads refuse."""
