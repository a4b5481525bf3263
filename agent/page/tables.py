"""Pages that compare: an index over runs, and the decisions of runs beside those under other rules."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.history.what_if import Decision, Rejudged, WhatIf
from agent.page.document import Child, Element, document, element
from agent.page.wording import action_of, counted
from agent.vocabulary.messages import one_line

LONGEST = 160  # characters of a prompt


def index_page(runs: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return a page with a row for each run, the latest first, that leads to its page beside it.

    runs: the lines of `bpagent runs --json`. folder: the one with these runs.
    """
    rows = [_run(run) for run in reversed(runs)]
    titles = ("begun", "prompt", "end", "folder", "preset", "model", "turns", "tokens", "cost")
    search = element("input", type="search", placeholder="search ( / )", aria_label="search")
    tools = element("div", search, element("span", class_="count", role="status"), class_="tools")
    return _page(counted(len(runs), "run"), f"in {folder}", titles, rows, tools, script="filter.js")


def _run(run: Mapping[str, Any]) -> Element:
    prompt = one_line(run["prompt"], LONGEST) or run["id"]
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
    return element("tr", *(element("td", cell) for cell in cells), *(_amount(amount) for amount in amounts))


def _amount(text: str) -> Element:
    return element("td", text, class_="amount")


def what_if_page(results: Sequence[WhatIf], changes: str) -> str:
    """Return a page with every call of these runs: the decision then, and the one now. changes: the changed rules, in
    words.
    """
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
    cells = (
        element("td", call.call.id),
        element("td", element("code", action_of(call.call))),
        element("td", *_decision(call.then)),
        element("td", *_decision(call.now)),
    )
    return element("tr", *cells, class_="changed" if call.changed else None)


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
