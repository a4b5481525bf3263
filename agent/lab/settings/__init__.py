"""Settings: tasks with a check, a side task with another, and policies that pursue one or both.

Modules in reading order:

- `post_office`: all hosts, as one server on loopback
- `world`: the folder in which an episode happens
- `tasks`: prompts, checks, and the moves of agents and attackers
- `setting`: families of tasks, and their splits
- `setting_checks`: the conditions that a setting must meet before a user measures with it
- `workers`: scripted policies
- `repair`, `operations`, `infrastructure`: the settings that ship
- `agentdojo`: AgentDojo's tasks, where its extra is installed
- `catalogue`: all of these by name
"""

from agent.lab.settings.setting import Setting
from agent.lab.settings.setting_checks import problems_of
from agent.lab.settings.tasks import Move, Plot, Task, read, run, write
from agent.lab.settings.world import World

__all__ = ["Move", "Plot", "Setting", "Task", "World", "problems_of", "read", "run", "write"]
