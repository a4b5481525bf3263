"""Every instance of every shipped setting, four ways: `make settings`."""

import sys

from agent.lab.settings.catalogue import SETTINGS
from agent.lab.settings.setting_checks import problems_of


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    wrong = False
    for setting in SETTINGS.values():
        problems = problems_of(setting)
        wrong = wrong or bool(problems)
        print(f"{setting.name}: {len(setting.tasks())} tasks, {len(problems)} problems", *problems, sep="\n  ")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
