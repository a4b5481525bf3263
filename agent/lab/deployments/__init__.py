"""Deployments: what spans episodes, as a second behavioral program whose events are episodes.

The same model does many tasks, one after the other. An audit may come after any of them, there are not many of them,
and what one of them finds is a reason to trust the model no more. Each such rule is a b-thread.

- `program`: the events of a deployment, its episodes one after the other, the rules over them, and what came of them
- `plan`: deployments of an experiment, also as YAML
- `runner`: which episodes they have, taken from the results or run now
- `results`: a row for each deployment; audits, catches, harm and lost usefulness over seeds
"""
