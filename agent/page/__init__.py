"""The HTML page of a run: its facts, its conversation, and a lane for each b-thread; and pages about runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.history.playback import shadow_of, watch_program
from agent.log.reading import RecordedRun
from agent.log.writing import is_in_use
from agent.page.document import Child, Element, document, element
from agent.page.model import MARKS, PageModel
from agent.vocabulary.messages import typed
from bp import BThread, Event

__all__ = ["program_page", "render_page"]


def render_page(run: RecordedRun, threads: Sequence[BThread] = (), afterwards: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of a run, one HTML document that asks for nothing from anywhere.

    threads: the b-threads that the run had beside its preset's, for what they heard and held; without them the page
    says that it does not know. afterwards: who said what of the run when it was over.
    """
    shadow, model = shadow_of(run, threads), PageModel()
    for record in run.records:
        model.take(shadow.take(record))
    shadow.close()
    problems = [shadow.problem, "the last line of the log is torn" if run.torn else None]
    return lanes_page(title_of(run), model, [run_facts(run, afterwards)], [each for each in problems if each])


def program_page(bthreads: Sequence[BThread], posts: Sequence[Event] = (), title: str = "A behavioral program") -> str:
    """Return the page of a plain program that runs until it rests, then takes each of `posts`: its steps, no more.

    It ends where a b-thread fails.
    """
    model = PageModel()
    for step in watch_program(bthreads, posts):
        model.take(step)
    return lanes_page(title, model)


LESSON = (
    "Each column on the right is a b-thread, one rule of the program; each row is an event. Before an event happens, "
    "some b-threads request it (●), others wait for it (○), hold it back (■) or refuse it (✕). Read a row from left to "
    "right: what happened, then which rules wanted it, heard it, or stood in its way."
)


def lanes_page(
    title: str, model: PageModel, facts: Sequence[Child] = (), problems: Sequence[str] = (), *, live: bool = False
) -> str:
    """Return a page with the lanes of a model; a `live` one asks its own server for what happens, and decides there."""
    told = [element("p", problem, class_="problem") for problem in problems]
    header = element("header", element("h1", title), *facts, *told)
    main = element("main", element("noscript", "This page is drawn by the one script in it; please allow that."))
    return document(title, header, main, data={**lanes_data(model), "live": live}, connects=live)


def lanes_data(model: PageModel) -> dict[str, Any]:
    """Return what the script of a page draws: everything that the model knows, and how it is to be read."""
    return {**model.data(), "marks": MARKS, "lesson": LESSON}


def title_of(run: RecordedRun) -> str:
    """Return the first words that were asked for."""
    prompt = next((record["data"].get("text") for record in run.records if record["name"] == "prompt_given"), None)
    return typed(str(prompt))[:120] if prompt else run.path.name


def run_facts(run: RecordedRun, afterwards: Sequence[tuple[str, str]] = ()) -> Element:
    """Return what there is to know of a run at a glance."""
    status, words = _ending(run)
    rows: tuple[tuple[str, Element | str], ...] = (
        ("ended", element("b", words, class_=status)),
        *((name, str(run.header.get(name))) for name in ("preset", "model", "workspace")),
        ("sandbox", str(run.header.get("sandbox") or "off")),
        ("begun", str(run.header.get("begun"))),
        *_counts(run),
        ("log", run.path.name),
        *((f"{who}, afterwards", said) for who, said in afterwards),
    )
    return element("dl", *[element("div", element("dt", name), element("dd", value)) for name, value in rows])


def _ending(run: RecordedRun) -> tuple[str, str]:
    last: Mapping[str, Any] = run.records[-1] if run.records else {"name": ""}
    if last["name"] != "run_ended":
        return "open", "not yet: the run goes on" if is_in_use(
            run.path
        ) else "not yet: the log ends before its run does"
    status = str(last["data"]["status"])
    return status, f"{status} ({last['data']['reason']})"


def _counts(run: RecordedRun) -> tuple[tuple[str, str], ...]:
    def count(name: str) -> int:
        return sum(record["name"] == name for record in run.records)

    refused = sum(
        record["name"] == "call_answered" and record["data"].get("outcome") != "ran" for record in run.records
    )
    counted = (("turns", count("answer_committed")), ("tools run", count("tool_started")), ("not run", refused))
    return tuple((name, str(number)) for name, number in counted)
