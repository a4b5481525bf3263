"""`bpagent run`: a model works on a task, with tools, under the rules of a preset."""

import sys
from argparse import Namespace
from typing import Any

from agent.cli.build import new_agent
from agent.cli.lanes import Lanes
from agent.cli.prompt import read_prompt
from agent.cli.screen import screen_on
from agent.cli.session import Desk, introduction, lead, print_end, printing
from agent.session.agent import Agent


def execute(arguments: Namespace) -> int:
    """Run and return the exit code. Raises for wrong input, before anything happens."""
    prompt = read_prompt(arguments.prompt)
    prints = printing(arguments, arguments.secret)
    screen = screen_on(sys.stderr)
    preset, make, servers = new_agent(arguments, later=arguments.approvals == "later")

    def introduced(*tools: Any, **options: Any) -> Agent:
        agent = make(*tools, **options)
        screen.labelled("system", f"{introduction(agent)}\nlog {agent.log_path}", "system")
        return agent

    desk = Desk(
        screen,
        preset,
        **prints,
        elsewhere=arguments.approvals == "page",
        draws=(lambda agent: Lanes(screen, agent.bthreads).show) if arguments.lanes else None,
    )
    lead(desk, introduced, prompt, servers)
    return print_end(desk, arguments)
