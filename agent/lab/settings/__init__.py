"""Settings: tasks with a check, a side task with another, and policies that pursue one or both."""

from agent.lab.settings.setting import Setting
from agent.lab.settings.setting_checks import problems_of
from agent.lab.settings.tasks import Move, Plot, Task, read, run, write
from agent.lab.settings.world import World

__all__ = ["Move", "Plot", "Setting", "Task", "World", "problems_of", "read", "run", "write"]
