"""Model checking of behavioral programs: every reachable state, and what is wrong with any.

To read it, begin with `verifier`, the public call, and go on with

    states          global states and the steps between them: the rules of the board, over bit masks
    local_states    each b-thread alone as an automaton; every step is computed twice
    fingerprint     when two local states are the same
    purity          why a step follows from a local state and an event alone, or why it is refused
    search          breadth first through the states, or random walks
    reduction       which orders of events need not be tried, and the cycle proviso
    liveness        cycles: b-threads that stay hot, events without end
    report          counterexamples with their stories, and the coverage
    properties      patterns over events (absence, response, ...) as monitors
    drawing         automata and state spaces as Mermaid diagrams
"""
