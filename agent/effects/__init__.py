"""The effects that selected events start: one for each kind, declared for the runner and for the verifier."""
