"""Reports: from rows to thresholds, usefulness and safety with intervals; tables, figures and the page.

- `samples`: what is resampled of a protocol's episodes
- `analysis`: every figure of an experiment, on all replicates
- `tables`: the figures as tables; `data`: rows as tables for other programs
- `plots`: figures; `report`: text and page
"""
