"""Experiments: settings x policies x protocols x seeds, each episode once, whatever interrupts it.

Modules in reading order:

- `endpoints`: which real model has a role. `deployment_plans`: what spans episodes
- `own_protocols`: those that somebody has written. `plans`: which episodes there are, and their keys
- `words`, `deployment_files`, `model_files`, `plan_files`: the same as YAML
- `rows`, `shelf`, `spending`: what is kept of them, and where
- `calling`: models whose answers are kept. `pacing`: how often they are asked. `voices`: those of an episode
- `tempting`: what an attacker is told. `treatments`: protocols and monitors of an episode
- `latency`: how long one waits. `witness`: who looks on
- `episodes`: one of them. `batches`: many
- `freezing`: thresholds from honest calibration
- `deployment_draws`: which episodes a deployment has. `deployment_rows`: what is kept of it. `deploying`: it runs
- `samples`, `analysis`: from rows to usefulness and safety. `verified`: with how many states a protocol was checked
- `tables`, `deployment_tables`: the same as text, and as CSV; `parquet`: as Parquet. `disclosing`: what telling costs
- `conduct`: all of it, one after the other. `drawing`, `report`: what is shown
- `answering`, `rerunning`: a recorded episode under another protocol. `foreseeing`: all of them, with bounds
- `finding`: which of several draws to audit, in closed form and simulated
"""
