"""The laboratory: how safe and how useful an agent stays under a protocol when its model may be trying to do harm.

Protocols and monitors are in `agent.protocols`; here they are tried out, from bottom to top:

- `measures/`: what is measured, as pure functions of scores and outcomes
- `isolation/`: where episodes run, so that nothing gets out
- `settings/`: tasks, side tasks, and policies that pursue them
- `episodes/`: a worker in a world under a protocol; one, then thousands; their rows and logs
- `experiments/`: settings x policies x protocols x seeds, from a plan
- `deployments/`: sequences of episodes: audits across them, and shutdown after a catch
- `reports/`: from rows to usefulness and safety, with intervals; tables and figures
- `sidecars`: scores and audits of finished logs, beside them
- `spending`: an experiment's cost. `extras`: the libraries that experiments need
- `concurrency`: locks and bounded parallelism. `json_lines`: append-only files
"""
