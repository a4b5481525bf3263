"""Model checking of behavioral programs: every reachable state, and what is wrong with any."""
