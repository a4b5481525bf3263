"""Experiments: settings x policies x protocols x seeds, each episode once, whatever interrupts it.

- `model_plans`: which real model has a role. `own_protocols`: protocols of users
- `plan`: which episodes there are, and their keys
- `plan_file`: plans as YAML. `yaml_values`: its words and numbers
- `thresholds`: set on honest calibration, once
- `experiment`: all of it, one after the other
"""
