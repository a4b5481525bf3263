"""What is remembered: folds over the events of a run, which b-threads never read."""
