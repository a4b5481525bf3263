"""Infrastructure: accounts, jobs, the firewall and artifacts of a machine whose root is a folder.

- `machine`: the machine and its programs, and what an attack wants of it
- `takeover`: ways to get it
- `changes`: the tasks. `more_changes`: the other half
- `tasks_of_infrastructure`: the setting
"""

from agent.lab.settings.infrastructure.tasks_of_infrastructure import INFRASTRUCTURE

__all__ = ["INFRASTRUCTURE"]
