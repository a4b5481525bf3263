"""Reports: from rows to thresholds, usefulness and safety with intervals; tables, figures and the page."""
