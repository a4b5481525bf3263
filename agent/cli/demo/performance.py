"""The demo on the screen: what is about to happen, the run as it happens, and who did what."""

import inspect
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve

from agent.cli.calling import called
from agent.cli.demo.protocol import nothing_leaves_after_a_secret
from agent.cli.demo.stage import make_agent
from agent.cli.demo.story import PROMPT
from agent.cli.demo.workshop import Workshop, make_workshop
from agent.cli.keyboard import is_terminal
from agent.cli.mistakes import Mistake
from agent.cli.person import approval_question
from agent.cli.screen import Screen, screen_on
from agent.cli.session import Session, lead
from agent.cli.telling import action_of, command_of
from agent.effects.approval import Approver
from agent.effects.streaming import Watcher
from agent.session.agent import Agent
from agent.session.run import Run
from agent.tools.definition import Tool
from agent.vocabulary.events import ApprovalAsked, GateRejected
from bp import Refusals, Step

__all__ = ["execute"]

PAUSE = 0.5  # seconds that the model takes to answer while a person looks on

BEFORE = """\
An agent works on a small project in {project}.
The model is scripted, so that this runs offline. Everything else is real: tools, gate, log.

In bpagent every rule is a b-thread: a generator that says, between two events, what it requests, waits for, blocks or
refuses. The model may ask for any call; a call runs only if no b-thread refuses it. Most rules of this run ship with
the preset. This one is the demo's own:
"""

PAGE = "What every b-thread did at every step, as a page in your browser:"
AFTER = """\
The run is a log of {steps} records. Replayed without model and tools, its b-threads must decide the same:"""


def execute(arguments: Namespace) -> int:
    """Perform the demo and return the exit code of its run."""
    screen = screen_on(sys.stdout)
    workshop = _workshop(arguments.log)
    _introduce(screen, workshop)
    outcome = lead(_session(screen, workshop))
    _summarize(screen, outcome.run)
    return outcome.code


def _workshop(log: str | None) -> Workshop:
    path = None if log is None else Path(log).expanduser().absolute()
    if path is not None and path.exists():
        raise Mistake(f"the log {path} exists already; name another file, or remove it")
    try:
        workshop = make_workshop()
    except OSError as error:
        raise Mistake(f"no scratch folder for the demo: {error.strerror}; set TMPDIR to a folder") from error
    return workshop if path is None else evolve(workshop, log=path)


def _introduce(screen: Screen, workshop: Workshop) -> None:
    for paragraph in BEFORE.format(project=workshop.project).split("\n\n"):
        screen.paragraph(" ".join(paragraph.split()))
        screen.line()
    for line in inspect.getsource(nothing_leaves_after_a_secret.function).splitlines():
        screen.line(f"    {line}", "action")
    screen.line()
    screen.labelled("prompt", PROMPT, "question")


def _session(screen: Screen, workshop: Workshop) -> Session:
    attended = is_terminal() and sys.stdout.isatty()

    def make(approver: Approver, on_step: Callable[[Step], None], *_: Watcher | tuple[Tool, ...] | None) -> Agent:
        return make_agent(workshop, approve=approver, on_step=on_step, pause=PAUSE if attended else 0.0)

    approver = None if attended else _nobody_is_here(screen)
    return Session(make, PROMPT, screen, present=attended, approver=approver, shows_final_text=True)


def _nobody_is_here(screen: Screen) -> Approver:
    """Return the approver for a demo that nobody watches; it says that it answers."""

    def answer(asked: ApprovalAsked) -> bool:
        screen.labelled("question", asked.question, "question")
        screen.line(approval_question(command_of(asked.call)), "question")
        screen.labelled("system", "nobody is at a terminal: the demo itself answers yes", "system")
        return True

    return answer


def _summarize(screen: Screen, run: Run) -> None:
    screen.line()
    screen.line("What the b-threads did", "title")
    decisions = _decisions(run.steps)
    longest = max((len(action) for action, _ in decisions), default=0)
    for action, decision in decisions:
        screen.paragraph(f"  {action:{longest}}  {decision}", indent="    ")
    if all(len(refusals) == 1 for refusals in _refusals(run.steps)):
        screen.paragraph("Each of these refusals is one b-thread: without it the gate lets the call through.")
    _offer(screen, PAGE, "view --open", run)
    _offer(screen, AFTER.format(steps=len(run.steps)), "replay", run)


def _offer(screen: Screen, purpose: str, command: str, run: Run) -> None:
    """Show the command that does more with the log."""
    screen.line()
    screen.paragraph(purpose)
    screen.line()
    screen.line(f"    {called(*command.split(), str(run.log))}", "action")


def _decisions(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """Return, for each refusal and each question, the action and what became of it."""
    decisions = []
    for step in steps:
        match step.event:
            case GateRejected(call=call, refusals=refusals):
                refusing = " and ".join(refusal.bthread for refusal in refusals)
                decisions.append((action_of(call), f"refused by {refusing}"))
            case ApprovalAsked(call=call):
                decisions.append((action_of(call), f"held by {step.bthread} until somebody had answered"))
    return decisions


def _refusals(steps: Sequence[Step]) -> list[Refusals]:
    return [step.event.refusals for step in steps if isinstance(step.event, GateRejected)]
