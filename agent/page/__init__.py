"""The HTML page of a run: its facts, its conversation, and a lane for each b-thread; and pages about several runs."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent.history.playback import Held, WatchedStep, held_back, played, shadow_of
from agent.log.reading import RecordedRun
from agent.log.writing import is_in_use
from agent.page.document import Child, Element, document, element
from agent.page.model import MARKS, PageModel
from agent.page.wording import ending
from agent.vocabulary.encoding import to_record
from agent.vocabulary.messages import typed
from bp import BProgram, BProgramError, BThread, Event, Record
from bp.errors import shown

__all__ = ["program_page", "render_page"]


def render_page(run: RecordedRun, threads: Sequence[BThread] = (), afterwards: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of a run, one HTML document that loads no other resources.

    threads: the additional b-threads of the run, to show the events that they received and blocked; without them the
    page says that these are unknown. afterwards: remarks about the finished run, each with its author.
    """
    shadow, model = shadow_of(run, threads), PageModel()
    for record in run.records:
        model.take(shadow.take(record))
    shadow.close()
    problems = [shadow.problem, "the last line of the log is torn" if run.torn else None]
    return lanes_page(title_of(run), model, [run_facts(run, afterwards)], [each for each in problems if each])


def program_page(
    bthreads: Sequence[BThread],
    posts: Sequence[Event] = (),
    title: str = "A behavioral program",
    trace: Sequence[Event] = (),
) -> str:
    """Return the page of a plain program that runs until it rests, then takes each of `posts`: its steps, and its end.

    trace: events to take instead, for example those of a violation; its environment belongs to `bthreads` then. Several
    b-threads of one function have their arguments in their names, except those started later.
    """
    from bp.verification.report import instance

    names, model = [bthread.name for bthread in bthreads], PageModel(told=shown)
    model.turns = [0]
    told = [bthread.named(instance(bthread)) if names.count(bthread.name) > 1 else bthread for bthread in bthreads]
    for number, (name, of, step) in enumerate(_watched(told, posts, trace), start=1):
        row = {"step": number, "name": name, "of": of, "marks": model.marks(step), "data": step.record.get("data", {})}
        model.rows.append(row)
    return lanes_page(title, model)


ENDS = {
    "blocked": "nothing more happens: what is requested is held back",
    "idle": "nothing is requested: it waits for what comes from outside",
    "finished": "no b-thread is left",
}


def _watched(
    bthreads: Sequence[BThread], posts: Sequence[Event], trace: Sequence[Event]
) -> Iterator[tuple[str, str, WatchedStep]]:
    """Yield each step of a program with its event in words; then its status, the meaning, and the events held back."""
    seen: deque[Record] = deque(maxlen=1)
    program, held, end = BProgram(*bthreads, listeners=(seen.append,)), tuple[Held, ...](), ""
    with suppress(BProgramError), program:
        try:
            assert program.candidates is not None  # starts the program
            held = held_back(program)
            for step in map(program.select, trace) if trace else played(program, posts):
                yield shown(step.event), "", WatchedStep(to_record(step), seen[-1].resumed, seen[-1].interrupted, held)
                held = held_back(program)
        except BProgramError as error:
            end = str(error)
        if end or program.status in ENDS:
            yield program.status, end or ENDS[program.status], WatchedStep({}, held=held)


LESSON = (
    "Each column on the right is a b-thread, one rule of the program; each row is an event. Before an event happens, "
    "some b-threads request it (●), others wait for it (○), hold it back (■) or refuse it (✕). Read a row from left to "
    "right: the event, then the rules that requested it, waited for it, or held it back."
)


def lanes_page(
    title: str, model: PageModel, facts: Sequence[Child] = (), problems: Sequence[str] = (), *, live: bool = False
) -> str:
    """Return a page with the lanes of a model; a `live` one gets events from its server, and sends decisions to it."""
    told = [element("p", problem, class_="problem") for problem in problems]
    header = element("header", element("h1", title), *facts, *told)
    main = element("main", element("noscript", "This page is drawn by the one script in it; please allow that."))
    return document(title, header, main, data={**lanes_data(model), "live": live}, connects=live)


def lanes_data(model: PageModel) -> dict[str, Any]:
    """Return the data that the script of a page draws: those of the model, and the legend."""
    return {**model.data(), "marks": MARKS, "lesson": LESSON}


def title_of(run: RecordedRun) -> str:
    """Return the first prompt as a title."""
    prompt = next((record["data"].get("text") for record in run.records if record["name"] == "prompt_given"), None)
    return typed(str(prompt))[:120] if prompt else run.path.name


def run_facts(run: RecordedRun, afterwards: Sequence[tuple[str, str]] = ()) -> Element:
    """Return the facts of a run that the page shows first."""
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
        return "open", f"not yet: {'the run goes on' if is_in_use(run.path) else 'the log ends before its run does'}"
    status = str(last["data"]["status"])
    return status, ending(last["data"])


def _counts(run: RecordedRun) -> tuple[tuple[str, str], ...]:
    def count(name: str) -> int:
        return sum(record["name"] == name for record in run.records)

    refused = sum(
        record["name"] == "call_answered" and record["data"].get("outcome") != "ran" for record in run.records
    )
    counted = (("turns", count("answer_committed")), ("tools run", count("tool_started")), ("not run", refused))
    return tuple((name, str(number)) for name, number in counted)
