"""What selected events start in the world: one effect each, data for the runner and for the verifier."""
