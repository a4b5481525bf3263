"""`bpagent run`: a model works on a task, with tools, under the rules of a preset."""

import sys
from argparse import Namespace
from collections.abc import Callable

from agent.cli.build import new_agent, servers_of
from agent.cli.lanes import Lanes
from agent.cli.prompt import STOPS
from agent.cli.prompt_files import read_prompt
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
from agent.effects.approval import Approver
from agent.effects.execution import Watcher
from agent.session.agent import Agent
from agent.tools.definition import Tool
from bp import Step


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
        stops=STOPS[preset.stop_text],
        watch=print_record if arguments.json else None,
        max_iterations=preset.max_iterations,
        attempts=preset.attempts,
        policy=preset.judging_policy(),
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

    def introduced(
        approver: Approver, on_step: Callable[[Step], None], on_text: Watcher | None, tools: tuple[Tool, ...]
    ) -> Agent:
        agent = make(approver, on_step, on_text, tools)
        screen.labelled("system", f"{introduction(agent)}\nlog {agent.log_path}", "system")
        return agent

    return introduced
