"""The HTML page of a run: its facts, its conversation, and a lane for each b-thread; and pages about several runs."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.history.changes import history_of
from agent.history.playback import Held, WatchedStep, held_back, played, shadow_of
from agent.history.what_if import Decision, Rejudged, WhatIf
from agent.log.reading import RecordedRun
from agent.log.writing import is_in_use
from agent.page.document import Child, Element, document, element
from agent.page.model import MARKS, PageModel
from agent.page.wording import action_of, counted, ending
from agent.vocabulary.encoding import to_record
from agent.vocabulary.messages import one_line, typed
from bp import BProgram, BProgramError, BThread, Event
from bp.errors import shown
from bp.program import Record
from bp.statements import as_list, check_bthreads

__all__ = ["program_page", "render_page"]


def render_page(run: RecordedRun, threads: Sequence[BThread] = (), afterwards: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of a run, one HTML document that loads no other resources.

    threads: the additional b-threads of the run, to show the events that they received and blocked; without them the
    page says that these are unknown. afterwards: remarks about the finished run, each with its author.
    """
    shadow, model = shadow_of(run, threads), PageModel(files=history_of(run))
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
    b-threads of one function have their arguments in their names, except those started later. Raises TypeError for
    anything but a list of b-threads.
    """
    from bp.verification.report import instance

    bthreads = as_list("bthreads", bthreads)
    check_bthreads("program_page", bthreads)
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
            _ = program.candidates  # starts the program
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
    rows = (("turns", count("answer_committed")), ("tools run", count("tool_started")), ("not run", refused))
    return tuple((name, str(number)) for name, number in rows)


# Pages that compare: an index over runs, and the decisions of runs beside those under other rules.

LONGEST_PROMPT = 160  # characters of a prompt


def index_page(runs: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return a page with a row for each run, the latest first, that leads to its page beside it.

    runs: the lines of `bpagent runs --json`. folder: the one with these runs.
    """
    rows = [_run_row(run) for run in reversed(runs)]
    titles = ("begun", "prompt", "end", "folder", "preset", "model", "turns", "tokens", "cost")
    search = element("input", type="search", placeholder="search ( / )", aria_label="search")
    tools = element("div", search, element("span", class_="count", role="status"), class_="tools")
    return _page(counted(len(runs), "run"), f"in {folder}", titles, rows, tools, script="filter.js")


def _run_row(run: Mapping[str, Any]) -> Element:
    prompt = one_line(run["prompt"], LONGEST_PROMPT) or run["id"]
    cells: tuple[Child, ...] = (
        run["begun"][:16].replace("T", " "),
        element("a", prompt, href=f"{run['id']}.html"),
        element("span", run["status"], class_=run["status"], title=run["reason"]),
        Path(run["workspace"]).name,
        run["preset"],
        run["model"],
    )
    cost = "" if run["cost"] is None else f"${run['cost']:.2f}"
    amounts = (counted(run["turns"], "turn"), counted(run["tokens"], "token") if run["tokens"] else "", cost)
    of_amounts = (element("td", amount, class_="amount") for amount in amounts)
    return element("tr", *(element("td", cell) for cell in cells), *of_amounts)


def what_if_page(results: Sequence[WhatIf], changes: str) -> str:
    """Return a page with every call of these runs: the decision then, and the one now, by `changes` in words."""
    rows = [row for result in results for row in _judged(result)]
    changed = sum(len(result.changed) for result in results)
    calls = sum(len(result.calls) for result in results)
    said = f"{changed} of {calls} calls would be decided otherwise"
    return _page(f"What if: {changes}", said, ("call", "action", "then", "now"), rows)


def _judged(result: WhatIf) -> Iterable[Element]:
    page = result.path.absolute().with_suffix(".html")
    log = element("a", str(result.path), href=page.as_uri()) if page.exists() else str(result.path)
    yield element("tr", element("th", log, colspan="4"))
    yield from map(_decided, result.calls)
    if result.divergence is not None:
        said = f"the recording is valid up to line {result.divergence.line - 1}: {result.divergence.why}"
        yield element("tr", element("td", said, colspan="4", class_="waiting"))


def _decided(call: Rejudged) -> Element:
    decisions = (element("td", *_decision(each)) for each in (call.then, call.now))
    action = element("td", element("code", action_of(call.call)))
    return element("tr", element("td", call.call.id), action, *decisions, class_="changed" if call.changed else None)


def _decision(decision: Decision | None) -> tuple[Child, ...]:
    if decision is None:
        return ("not known",)
    tone = "good" if decision.kind.startswith("approved") else "refused" if decision.kind == "rejected" else "waiting"
    by = f" by {', '.join(decision.by)}" if decision.by else ""
    why = element("div", decision.why) if decision.why else None
    return (element("b", f"{decision.kind}{by}", class_=tone), why)


def _page(
    title: str, told: str, titles: Sequence[str], rows: Sequence[Element], tools: Child = None, script: str = ""
) -> str:
    head = element("thead", element("tr", *(element("th", name) for name in titles)))
    header = element("header", element("h1", title), element("p", told, class_="lesson"), tools)
    return document(title, header, element("main", element("table", head, element("tbody", *rows))), script=script)
