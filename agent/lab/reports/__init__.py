"""Reports: from rows to thresholds, usefulness and safety with intervals; tables, figures and the page.

- `samples`: the episodes of a protocol as arrays, for resampling
- `analysis`: every figure of an experiment, on all replicates
- `tables`: the figures as tables; `data`: rows as tables for other programs
- `plots`: figures; `report`: text and page
"""
