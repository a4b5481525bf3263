"""Experiments: settings x policies x protocols x seeds, each episode once, whatever interrupts it.

Modules in reading order:

- `endpoints`: which real model has a role. `plans`: which episodes there are, and their keys
- `model_files`, `plan_files`: the same as YAML
- `rows`, `shelf`, `spending`: what is kept of them, and where
- `calling`: models whose answers are kept. `pacing`: how often they are asked. `voices`: those of an episode
- `tempting`: what an attacker is told. `treatments`: protocols and monitors of an episode. `witness`: who looks on
- `episodes`: one of them. `batches`: many
- `freezing`: thresholds from honest calibration
- `analysis`: from rows to usefulness and safety. `conduct`: all of it, one after the other
- `tables`, `drawing`, `report`: what is shown
- `finding`: which of several draws to audit, in closed form and simulated
"""
