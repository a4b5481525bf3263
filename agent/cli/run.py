"""`bpagent run`: a model works on a task, with tools, under the rules of a preset."""

import sys
from argparse import Namespace
from typing import Any

from agent.cli.build import new_agent, servers_of
from agent.cli.lanes import Lanes
from agent.cli.prompt import read_prompt
from agent.cli.screen import Screen, screen_on
from agent.cli.session import (
    Maker,
    Session,
    check_partials,
    introduction,
    lead,
    options_again,
    print_outcome,
    print_partial,
    print_record,
)
from agent.session.agent import Agent


def execute(arguments: Namespace) -> int:
    """Run and return the exit code. Raises for wrong input, before anything happens."""
    prompt = read_prompt(arguments.prompt)
    check_partials(arguments, arguments.secret)
    screen = screen_on(sys.stderr)
    preset, make = new_agent(arguments, later=arguments.approvals == "later")
    session = Session(
        make=_introducing(make, screen),
        prompt=prompt,
        screen=screen,
        preset=preset,
        watch=print_record if arguments.json else None,
        servers=servers_of(arguments),
        tells=print_partial if arguments.partials else None,
        again=options_again(arguments),
        draws=(lambda agent: Lanes(screen, agent.bthreads).show) if arguments.lanes else None,
    )
    outcome = lead(session)
    print_outcome(outcome, session, as_json=arguments.json)
    return outcome.code


def _introducing(make: Maker, screen: Screen) -> Maker:
    """Have the agent tell what it is."""

    def introduced(*parts: Any) -> Agent:
        agent = make(*parts)
        screen.labelled("system", f"{introduction(agent)}\nlog {agent.log_path}", "system")
        return agent

    return introduced
