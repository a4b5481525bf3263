"""Experiments: settings x policies x protocols x seeds, each episode once, whatever interrupts it.

Modules in reading order:

- `deployment_plans`: what spans episodes. `plans`: which episodes there are, and their keys
- `words`, `deployment_files`, `plan_files`: the same as YAML
- `rows`, `shelf`: what is kept of them, and where
- `calling`: models whose answers are kept. `treatments`: protocols and monitors of an episode
- `latency`: how long one waits. `witness`: who looks on
- `episodes`: one of them. `batches`: many
- `freezing`: thresholds from honest calibration
- `deployment_draws`: which episodes a deployment has. `deployment_rows`: what is kept of it. `deploying`: it runs
- `analysis`: from rows to usefulness and safety. `tables`, `deployment_tables`: the same as text, and as CSV;
  `parquet`: as Parquet
- `conduct`: all of it, one after the other. `drawing`, `report`: what is shown
- `answering`, `rerunning`: a recorded episode under another protocol. `foreseeing`: all of them, with bounds
- `finding`: which of several draws to audit, in closed form and simulated
"""
