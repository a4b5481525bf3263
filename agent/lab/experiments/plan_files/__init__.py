"""Plans as YAML: every mistake is told with file, line, column and the nearest word that is known.

- `words`: words and numbers
- `options`: which options a protocol takes
- `deployments`: the section `deployments` of a plan
- `limits`: what an episode may take of the machine
- `models`: real models, and what a plan needs where its agent is one
- `plan`: a whole file
"""

from agent.lab.experiments.plan_files.plan import PlanError, load_plan

__all__ = ["PlanError", "load_plan"]
