"""The steps of a run from top to bottom, and a lane for each b-thread: what it did, and what it held."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.history.watching import Moment
from agent.page.markup import Element, element
from agent.page.wording import reason_of, summary_of

__all__ = ["LEGEND", "lanes"]

OUTSIDE = "outside"
LONGEST = 4_000  # characters of the data of one record

LEGEND = (
    ("refused", "✕", "refused what was requested instead, and said why"),
    ("requested", "●", "requested the event"),
    ("closed", "⊗", "was closed by the event"),
    ("waits", "◌", "requests something that is held back"),
    ("holds", "■", "holds back what another b-thread requests"),
    ("heard", "○", "heard it, and went on"),
)
"""The marks: their class, their sign, what they mean; of several in one place the first is shown."""

Marks = Mapping[str, Mapping[str, str]]  # by b-thread: the marks, each with what is to be said


def lanes(moments: Sequence[Moment]) -> Element:
    """Return a table: a row for each step, a column for each b-thread that ever did anything."""
    marks = [_marks(moment) for moment in moments]
    names = _names(marks)
    head = element("tr", element("th", "step"), element("th", "event"), *[_lane_head(name) for name in names])
    rows = [_row(moment, mark, names) for moment, mark in zip(moments, marks, strict=True)]
    return element("table", element("thead", head), element("tbody", *rows), class_="lanes")


def _names(marks: Sequence[Marks]) -> list[str]:
    """Return the lanes in the order in which they are first needed, what is outside first."""
    found = dict.fromkeys(name for mark in marks for name in mark)
    return [OUTSIDE, *(name for name in found if name != OUTSIDE)]


def _marks(moment: Moment) -> Marks:
    """Return what each b-thread did at one step."""
    marks: dict[str, dict[str, str]] = {}

    def mark(name: str, sort: str, words: str) -> None:
        marks.setdefault(name, {}).setdefault(sort, words)

    origin, event = moment.record["origin"], moment.record["name"]
    mark(origin, "requested", f"{origin} requested {event}" if origin != OUTSIDE else f"{event} came from outside")
    for name in moment.heard:
        mark(name, "heard", f"{name} heard {event}")
    for name in moment.closed:
        mark(name, "closed", f"{name} was closed by {event}")
    for refusal in moment.record.get("refusals") or ():
        mark(refusal["bthread"], "refused", f"{refusal['bthread']} refused: {reason_of(refusal['because'])}")
    for held in moment.held:
        mark(held.requester, "waits", f"{held.requester} waits with {held.event.name}")
        for blocker in held.blockers:
            why = "" if blocker.because is None else f": {blocker.because}"
            mark(blocker.bthread, "holds", f"{blocker.bthread} holds {held.event.name} of {held.requester}{why}")
    return marks


def _lane_head(name: str) -> Element:
    return element("th", element("span", name), class_="lane")


def _row(moment: Moment, marks: Marks, names: Sequence[str]) -> Element:
    record = moment.record
    step = str(record["step"])
    number = element("td", element("a", step, href=f"#step-{step}"), class_="number")
    cells = [_cell(name, marks.get(name, {})) for name in names]
    begins = " begins" if record["origin"] == OUTSIDE else ""
    refused = " refusal" if record.get("refusals") else ""
    return element(
        "tr", number, element("td", _event(record, marks), class_="event"), *cells, id=f"step-{step}",
        class_=f"{record['name']}{begins}{refused}",
    )  # fmt: skip


def _cell(name: str, marks: Mapping[str, str]) -> Element:
    shown = next(((sort, sign) for sort, sign, _ in LEGEND if sort in marks), None)
    if shown is None:
        return element("td")
    return element("td", shown[1], class_=" ".join(marks), title="\n".join(marks.values()))


def _event(record: Mapping[str, Any], marks: Marks) -> Element:
    """Return the event of a step; opened, it tells who did what, and what it carries."""
    name = element("summary", element("b", record["name"]), " ", element("span", summary_of(record), class_="of"))
    told = [element("li", words) for mark in marks.values() for words in mark.values()]
    carried = json.dumps(record["data"], ensure_ascii=False, indent=1)
    cut = carried if len(carried) <= LONGEST else carried[:LONGEST] + "\n… the rest is in the log"
    return element("details", name, element("ul", *told), element("pre", cut))
