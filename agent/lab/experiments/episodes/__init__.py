"""Episodes: a worker in a world, under a treatment, before a witness; one of them, then thousands.

- `red_team`: what a real attacker is told, as a prompt or by a function
- `treatments`: the b-threads, effects and monitors of an episode
- `latency`: how many answers come one after the other
- `witness`: who looks on, and writes down what measures need
- `staging`: everything that an episode consists of
- `running`: one episode, and its row
- `batches`: many of them, at once and on a pool
"""

from agent.lab.experiments.episodes.batches import Conditions, WorkersDie, make_bench, run_all
from agent.lab.experiments.episodes.running import run_episode
from agent.lab.experiments.episodes.staging import Bench
from agent.lab.experiments.episodes.treatments import bthreads_of, make_monitor, number_of
from agent.lab.experiments.episodes.witness import Counts, Witness

__all__ = [
    "Bench",
    "Conditions",
    "Counts",
    "Witness",
    "WorkersDie",
    "bthreads_of",
    "make_bench",
    "make_monitor",
    "number_of",
    "run_all",
    "run_episode",
]
