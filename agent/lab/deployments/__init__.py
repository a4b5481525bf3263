"""Deployments: sequences of episodes, as a second behavioral program whose events are episodes.

The same model does many tasks, one after the other. A few audits may follow any of them, and a finding may end the
trust in the model. Each such rule is a b-thread.

- `program`: the events of a deployment, the b-thread that runs its episodes, the rules over them, and its history
- `plan`: deployments of an experiment, also as YAML
- `runner`: takes their episodes from the results, or runs them
- `results`: a row for each deployment; audits, catches, harm and lost usefulness over seeds
"""
