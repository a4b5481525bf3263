"""What a log needs from outside to go on: a model by its name, secrets by theirs; and how a run's outcome is told."""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agent.cli.mistakes import Mistake
from agent.cli.screen import Screen, visible, visible_lines
from agent.cli.session import Outcome
from agent.cli.telling import command_of, is_error
from agent.log.reading import RecordedRun
from agent.log.redacting import Redaction
from agent.models.model import Model
from agent.models.names import model_from_name
from agent.models.scripted import ScriptedModel
from agent.models.wires import Api
from agent.projections.state import told_to_user
from agent.session.run import Run
from agent.vocabulary.encoding import dump, to_record
from bp import Step

__all__ = ["model_of", "nameable", "print_outcome", "record_printer", "secrets_of"]

INFERENCES = ("inference_finished", "inference_failed")


def nameable(model: str) -> str:
    """Return a model's name as a header keeps it: a script by its whole path, a server without its password."""
    if model.startswith("script:"):
        return f"script:{Path(model.removeprefix('script:')).absolute()}"
    credentials, at, _ = urlsplit(model).netloc.rpartition("@")
    return model.replace(f"{credentials}@", "", 1) if at else model


def model_of(recorded: RecordedRun, given: str, environ: Mapping[str, str]) -> Model:
    """Return the model of a log, or the one that was `given` instead; a script goes on where it was."""
    about = recorded.header.get("about")
    known = about.get("model") if isinstance(about, Mapping) else None
    name = given or str(known or recorded.header.get("model") or "")
    api: Api = "responses" if recorded.header.get("api") == "responses" else "chat"
    model = model_from_name(name, environ, api=api)
    if isinstance(model, ScriptedModel) and not given:
        model.skip(sum(record["name"] in INFERENCES for record in recorded.records))
    return model


def secrets_of(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that environment variables of these names hold. Raises Mistake for one that is not set."""
    secrets = {}
    for name in names:
        if not environ.get(name):
            raise Mistake(f"the secret {name!r} is to be kept out of the log, and there is no variable ${name}; set it")
        secrets[name] = environ[name]
    return secrets


def record_printer(secrets: Mapping[str, str]) -> Callable[[Step], None]:
    """Return what prints the record of a step as it stands in the log: without the secrets."""
    redaction = Redaction(secrets)

    def print_record(step: Step) -> None:
        print(dump(redaction(to_record(step))), flush=True)

    return print_record


def print_outcome(outcome: Outcome, screen: Screen, *, as_json: bool) -> None:
    """Print how a run ended: its last words, or what it waits for."""
    if outcome.run.status == "waiting":
        _say_what_it_waits_for(outcome.run, screen)
    if not as_json:
        print_final_text(outcome.run, was_shown=outcome.was_shown)
    elif outcome.failure is not None:
        print(dump(outcome.run.agent.redaction(outcome.failure)), flush=True)


def print_final_text(run: Run, *, was_shown: bool = False) -> None:
    """Print the last words, unless they are an error: those were told already; and what work left behind.

    On a terminal they are not printed once more when they `was_shown` there as they came.
    """
    if was_shown and sys.stdout.isatty() and not _is_interrupted_work(run):
        return
    if run.text and not is_error(run.status):
        text = f"{run.text}\n\n{told_to_user(run.state)}" if _is_interrupted_work(run) else run.text
        print("\n".join(visible_lines(text)) if sys.stdout.isatty() else text)


def _is_interrupted_work(run: Run) -> bool:
    """Whether an objective was pursued, and the run ended before it was complete (S1 7.2, 7.3)."""
    return run.state.objective is not None and run.status != "completed"


def _say_what_it_waits_for(run: Run, screen: Screen) -> None:
    """Say which calls wait, why, and how to decide; such a run has a log, or nobody could go on with it."""
    for asked in run.waiting_for:
        screen.labelled("question", f"{asked.call.id}: {command_of(asked.call)}\n{asked.question}", "question")
    log, call = shlex.quote(str(run.log)), shlex.quote(run.waiting_for[0].call.id)
    screen.labelled("system", "the run rests until somebody decides:", "system")
    screen.line(f"    bpagent resume {visible(log)} --approve {visible(call)}", "action")
    screen.line(f"    bpagent resume {visible(log)} --reject {visible(call)} --because TEXT", "action")
