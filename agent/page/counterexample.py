"""Verifications as pages: what came of each, the states of b-threads, and a counterexample to step through."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.page import lanes_data
from agent.page.document import Element, document, element
from agent.page.drawing import drawing
from agent.page.model import OUTSIDE, PageModel
from agent.verification.counterexample import short, statement_of
from agent.vocabulary.encoding import plain
from bp import BThread, Verification, Violation, draw_bthread

LESSON = (
    "These steps lead to what is wrong, and no shorter ones do. Each column is a b-thread; in each row one requests "
    "the event (●), or it comes from outside, and others hear it (○). Step on with j, back with k."
)
WORLD = ("world", "effect")  # b-threads that stand for what comes from outside


def verification_page(results: Sequence[tuple[str, Verification]], drawn: Iterable[BThread], title: str) -> str:
    """Return a page of verifications: what came of each, pictures of these b-threads, and the first counterexample."""
    rows = [_result(label, result) for label, result in results]
    violation = next((found for _, result in results for found in result.violations), None)
    wrong = () if violation is None else (element("p", f"{violation.kind}: {violation.message}", class_="problem"),)
    header = element("header", element("h1", title), element("dl", *rows), *wrong)
    figures = [element("figure", element("figcaption", each.name), _states_of(each)) for each in drawn]
    if violation is None:
        return document(title, header, *figures)
    return document(title, header, *figures, element("main"), data=_steps(violation))


def _states_of(bthread: BThread) -> Element:
    """Return the picture of a b-thread that hears the events which it declares for its predicates."""
    declared = bthread.function.__globals__.get("EXAMPLES", {})
    return drawing(draw_bthread(bthread, declared.get(bthread.function.__name__, ()), told=short))


def _result(label: str, result: Verification) -> Element:
    tone = "completed" if result.holds else "failed"
    counted = f" {result.states:,} states, {result.transitions:,} transitions"
    return element("div", element("dt", label), element("dd", element("b", result.verdict, class_=tone), counted))


def _steps(violation: Violation) -> dict[str, Any]:
    """Return the steps of a counterexample, as the script of a page draws them."""
    model = PageModel()
    model.turns = [0]
    for number, happened in enumerate(violation.story, start=1):
        requested = [name for name in happened.requested_by if name not in WORLD] or [OUTSIDE]
        heard = [name for name in happened.heard_by if name not in (*WORLD, *requested) and not statement_of(name)]
        marks = [(model.lane(name), "q") for name in requested] + [(model.lane(name), "h") for name in heard]
        said = short(happened.event).removeprefix(happened.event.name).strip()
        said = "" if said.startswith("event(") else said
        row = {"step": number, "name": happened.event.name, "of": said, "marks": marks, "data": plain(happened.event)}
        model.rows.append(row)
    if violation.blockers:
        model.rows.append(_deadlock(violation, model))
    return {**lanes_data(model), "lesson": LESSON}


def _deadlock(violation: Violation, model: PageModel) -> dict[str, Any]:
    """Return a last row that no event makes: who wants what, and who is in the way."""
    marks: list[tuple[Any, ...]] = []
    for requester, event, blockers in violation.blockers:
        marks.append((model.lane(requester), "w", event.name))
        marks += [(model.lane(name), "b", f"{event.name} of {requester}") for name, _ in blockers]
    step = len(violation.story) + 1
    return {"step": step, "name": violation.kind, "of": "nothing more happens", "marks": marks, "data": {}}
