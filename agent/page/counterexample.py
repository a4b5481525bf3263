"""Pages of verifications: the result, the states of b-threads, and a counterexample to step through."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.page import lanes_data
from agent.page.document import Element, document, element
from agent.page.model import OUTSIDE, PageModel
from agent.verification.counterexample import finding, short, statement_of
from agent.verification.environment import is_of_world
from agent.vocabulary.encoding import plain
from bp import BThread, Event, Verification, Violation, draw_bthread
from bp.verification.drawing import Graph

LESSON = (
    "These steps lead to the violation, and no shorter ones do. Each column is a b-thread; in each row one requests "
    "the event (●), or it comes from outside, and others hear it (○). Step on with j, back with k."
)


def verification_page(result: Verification, drawn: Iterable[BThread], title: str, events: Sequence[Event] = ()) -> str:
    """Return a page of a verification: its result, pictures of these b-threads, and the first counterexample.

    events: those that a b-thread is drawn with when its module declares none for it.
    """
    violation = next(iter(result.violations), None)
    wrong = () if violation is None else (finding(violation),)
    problems = (element("p", told, class_="problem") for told in (*wrong, *unfinished(result)))
    header = element("header", element("h1", title), element("dl", _result(result)), *problems)
    figures = [_figure(each, events, () if violation is None else violation.trace) for each in drawn]
    if violation is None:
        return document(title, header, *figures)
    return document(title, header, *figures, element("main"), data=_steps(violation))


def unfinished(result: Verification) -> tuple[str, ...]:
    """Return why a search was cut short, and how to continue; nothing for a complete one."""
    if not result.bounded:
        return ()
    why, more = "there are more states than --max-states", f"--max-states {10 * result.states}"
    if result.interrupted:
        why, more = "interrupted", "the same command, which starts again"
    most = [f"{name} {count:,}" for name, count in result.local_states if not is_of_world(name)][:5]
    return (
        f"not verified: {why}; only {result.states:,} states were looked at",
        f"most local states, so look for one that counts without end: {', '.join(most)}",
        f"to go on: {more}, or --alone, without the rules of the preset",
    )


def _figure(bthread: BThread, events: Sequence[Event], trace: Sequence[Event]) -> Element:
    """Return the picture of a b-thread that receives the events declared for it, or else `events`, and the trace.

    The trace is that of a counterexample; the position of the b-thread at its end is marked.
    """
    declared = bthread.function.__globals__.get("EXAMPLES", {}).get(bthread.function.__name__, ())
    graph = draw_bthread(bthread, (*(declared or events), *trace), told=short)
    told = f"{bthread.name}; where the counterexample ends it is at the bold position" if trace else bthread.name
    return element("figure", element("figcaption", told), graph.picture(_end_of(graph, trace) if trace else None))


def _end_of(graph: Graph, trace: Sequence[Event]) -> int:
    """Return the node of a b-thread after those of these events that it receives."""
    moves = {(edge.source, edge.label): edge.target for edge in graph.edges}
    place = 0
    for event in trace:
        place = moves.get((place, short(event)), place)
    return place


def _result(result: Verification) -> Element:
    tone = "completed" if result.holds else "failed"
    counted = f" {result.states:,} states, {result.transitions:,} transitions"
    return element(
        "div", element("dt", "as configured"), element("dd", element("b", result.verdict, class_=tone), counted)
    )


def _steps(violation: Violation) -> dict[str, Any]:
    """Return the steps of a counterexample, as the script of a page draws them."""
    model = PageModel()
    model.turns = [0]
    for number, happened in enumerate(violation.story, start=1):
        requested = [name for name in happened.requested_by if not is_of_world(name)] or [OUTSIDE]
        heard = [
            name for name in happened.heard_by if not (name in requested or is_of_world(name) or statement_of(name))
        ]
        ended = [name for name in happened.ended if not is_of_world(name)]
        said_by = (("q", requested), ("h", heard), ("c", ended))
        marks = [(model.lane(name), letter) for letter, names in said_by for name in names]
        said = short(happened.event).removeprefix(happened.event.name).strip()
        row = {"step": number, "name": happened.event.name, "of": said, "marks": marks, "data": plain(happened.event)}
        model.rows.append(row)
    if violation.blockers:
        model.rows.append(_deadlock(violation, model))
    return {**lanes_data(model), "lesson": LESSON}


def _deadlock(violation: Violation, model: PageModel) -> dict[str, Any]:
    """Return a last row without an event: the requests, and the b-threads that block them."""
    marks: list[tuple[Any, ...]] = []
    for requester, event, blockers in violation.blockers:
        marks.append((model.lane(requester), "w", event.name))
        marks += [(model.lane(name), "b", f"{event.name} of {requester}") for name, _ in blockers]
    step = len(violation.story) + 1
    return {"step": step, "name": violation.kind, "of": "nothing more happens", "marks": marks, "data": {}}
