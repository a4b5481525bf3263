"""The effects that selected events start in the world: one each, as data for the runner and for the verifier."""
