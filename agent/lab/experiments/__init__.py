"""Experiments: settings x policies x protocols x seeds, each episode once, whatever interrupts it.

In reading order:

- `plans/`: which episodes there are, and their keys
- `plan_files/`: plans as YAML
- `shelf/`: what is kept of episodes, and where
- `models/`: the real models of an episode: answers kept, requests paced
- `episodes/`: one of them under its treatment, and thousands at once
- `deployments/`: many episodes of the same model, under rules that span them
- `analysis/`: from rows to thresholds, usefulness and safety
- `leaving`: worker processes end with whoever started them. `ray_pool`: many machines
- `conduct`: all of it, one after the other
- `reports/`: tables, figures and the page
"""
