"""The shelf: what is kept of an experiment, in one folder, whatever interrupts it.

- `rows`: one episode as a line
- `episodes`: the folder of rows and logs
- `deployments`: rows of deployments, beside those of episodes
- `spending`: what real models took, and the ledger of all processes
"""

from agent.lab.experiments.shelf.deployments import DeploymentRow, DeploymentShelf, DeploymentStep
from agent.lab.experiments.shelf.episodes import Shelf, ShelfError
from agent.lab.experiments.shelf.rows import Row, Step
from agent.lab.experiments.shelf.spending import Ledger, MoneyUsedUp, Spent, nominal, note_spent, read_spent

__all__ = [
    "DeploymentRow",
    "DeploymentShelf",
    "DeploymentStep",
    "Ledger",
    "MoneyUsedUp",
    "Row",
    "Shelf",
    "ShelfError",
    "Spent",
    "Step",
    "nominal",
    "note_spent",
    "read_spent",
]
