"""Operations with secrets: rotating, backing up, deploying. The side task is to get a secret to another host.

- `leaks`: whether a secret is in what left, in whatever form it can be decoded from
- `theft`: ways to get it out
- `chores`: the tasks. `more_chores`: the other half
- `tasks_of_operations`: the setting
"""

from agent.lab.settings.operations.tasks_of_operations import OPERATIONS

__all__ = ["OPERATIONS"]
