"""`bpagent demo`: a scripted model, real tools, the real gate; what is refused is refused by b-threads, live.

First a run, with its b-threads as lanes; then five things to do with a run and its rules, each in a few lines; at the
end the audience attacks the gate.
"""

import inspect
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.cli.arguments import called
from agent.cli.demo.scenes import SCENES, attack
from agent.cli.demo.workshop import PROMPT, Workshop, make_agent, make_workshop, nothing_leaves_after_a_secret
from agent.cli.errors import OK, Mistake, of_run
from agent.cli.lanes import Lanes
from agent.cli.prompt import approval_question, is_terminal
from agent.cli.runs import new_log
from agent.cli.screen import Screen, screen_on
from agent.cli.session import Desk, lead
from agent.effects.approval import Approver
from agent.page.wording import command_of
from agent.presets.shipped import PRESETS
from agent.session.agent import Agent
from agent.tools.definition import Tool
from agent.vocabulary.events import ApprovalAsked
from bp import Step

PAUSE = 0.5  # seconds that the model takes to answer while a person looks on

BEFORE = """\
An agent works on a small repository in {project}.
The model is scripted, so that this runs offline. Everything else is real: tools, gate, git, log.

In bpagent every rule is a b-thread: a generator that says, between two events, what it requests, waits for, blocks or
refuses. The model may ask for any call; a call runs only if no b-thread refuses it. Most rules of this run ship with
the preset. This one is the demo's own:
"""

YOUR_TURN = {
    "cat .env": "your turn: after a yes, the demo's rule refuses git push",
    "git push": "your turn: no secret was read, so the demo's rule is silent; a yes pushes the fix",
}


def execute(arguments: Namespace) -> int:
    """Perform the demo and return the exit code of its run."""
    attended = is_terminal() and sys.stdout.isatty()
    log = new_log(arguments.log, datetime.now())
    if log.exists():
        raise Mistake(f"the log {log} exists already; name another file, or remove it")
    with TemporaryDirectory(prefix="bpagent-demo-", ignore_cleanup_errors=True) as folder:
        workshop = make_workshop(Path(folder), log.absolute())
        return perform(screen_on(sys.stdout), workshop, attended=attended, pace=arguments.pace or 0.0)


def perform(screen: Screen, workshop: Workshop, *, attended: bool = False, pace: float = 0.0) -> int:
    """Perform the demo and return an exit code; `attended`: a user answers. pace: seconds between two scenes."""
    _introduce(screen, workshop)
    time.sleep(pace)
    code = _work(screen, workshop, attended=attended, pause=max(pace / 2, PAUSE if attended else 0.0))
    if code != OK:
        return code
    for scene in SCENES:
        time.sleep(pace)
        screen.line()
        scene(screen, workshop)
    time.sleep(pace)
    screen.line()
    attack(screen, workshop, attended=attended)
    _offer(screen, workshop)
    return OK


def _introduce(screen: Screen, workshop: Workshop) -> None:
    for paragraph in BEFORE.format(project=workshop.project).split("\n\n"):
        screen.paragraph(" ".join(paragraph.split()))
        screen.line()
    for line in inspect.getsource(nothing_leaves_after_a_secret.function).splitlines():
        screen.line(f"    {line}", "action")
    screen.line()
    screen.paragraph("Below, each b-thread has a lane, from its first deed on, and each row is an event:")
    Lanes.legend(screen)
    screen.line()


def _work(screen: Screen, workshop: Workshop, *, attended: bool, pause: float) -> int:
    """Have the demo's agent do its task, drawn as lanes; return the exit code of its run."""

    def make(_: tuple[Tool, ...], *, approve: Approver, on_step: Callable[[Step], None], **others: Any) -> Agent:
        return make_agent(workshop, approve=approve, on_step=on_step, pause=pause)

    def draws(agent: Agent) -> Callable[[Step], None]:
        lanes = Lanes(screen, agent.bthreads, brief=True)

        def show(step: Step) -> None:
            lanes.show(step)
            if attended and isinstance(step.event, ApprovalAsked) and command_of(step.event.call) in YOUR_TURN:
                screen.labelled("system", YOUR_TURN[command_of(step.event.call)], "system")

        return show

    approver = None if attended else _answers_itself(screen)
    rules = workshop.folder / "rules.yaml"
    desk = Desk(screen, PRESETS["default"], present=attended, approver=approver, draws=draws, rules=rules)
    run = lead(desk, make, PROMPT)
    return of_run(run.status, desk.interrupted_by, run.reason)


def _answers_itself(screen: Screen) -> Approver:
    """Return the approver for a demo without a terminal: it answers yes, and says so."""

    def answer(asked: ApprovalAsked) -> bool:
        screen.line(approval_question(command_of(asked.call)), "question")
        screen.labelled("system", "no terminal: the demo answers yes", "system")
        return True

    return answer


def _offer(screen: Screen, workshop: Workshop) -> None:
    """Show the command that does more with the log."""
    screen.line()
    screen.paragraph("The run as a page, with every b-thread at every step:")
    screen.line(f"    {called('view', '--open', str(workshop.log))}", "action")
