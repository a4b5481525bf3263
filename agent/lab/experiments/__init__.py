"""Experiments: settings x policies x protocols x seeds; each episode runs once, also after interruptions.

- `model_plans`: the real models by role. `own_protocols`: protocols of users
- `plan`: the episodes and their keys
- `plan_file`: plans as YAML
- `thresholds`: frozen on honest calibration episodes
- `experiment`: runs all of it
"""
