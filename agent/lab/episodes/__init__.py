"""Episodes: a worker in a world, under a treatment, with an observer; one of them, then thousands."""
