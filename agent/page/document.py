"""The whole page: what the run was, what was said, and what the b-threads did."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent.history.watching import Watched, watch
from agent.log.reading import RecordedRun
from agent.page.appearance import STYLE
from agent.page.conversation import conversation
from agent.page.lanes import LEGEND, lanes
from agent.page.markup import Element, as_html, element
from bp import BThread

__all__ = ["render_page"]


def render_page(run: RecordedRun, threads: Sequence[BThread] = (), afterwards: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of a run, one HTML document that asks for nothing from anywhere and runs no script.

    threads: the b-threads that the run had beside its preset's, for what they heard and held; without them the page
    says that it does not know. afterwards: who said what of the run when it was over.
    """
    watched = watch(run, threads)
    title = _title(run)
    body = element("body", _header(run, watched, title, afterwards), _main(run, watched))
    return as_html(element("html", _head(title), body, lang="en"))


def _head(title: str) -> Element:
    return element(
        "head",
        element("meta", charset="utf-8"),
        _meta("viewport", "width=device-width, initial-scale=1"),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": _allowed()}),
        _meta("referrer", "no-referrer"),
        element("title", title),
        element("style", STYLE),
    )


def _allowed() -> str:
    """Return the content security policy: nothing but this one style sheet, and images that are in the page."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _meta(name: str, content: str) -> Element:
    return element("meta", {"name": name, "content": content})


def _header(run: RecordedRun, watched: Watched, title: str, afterwards: Sequence[tuple[str, str]]) -> Element:
    status, words = _ending(run)
    rows: tuple[tuple[str, Element | str], ...] = (
        ("ended", element("b", words, class_=status)),
        ("preset", str(run.header.get("preset"))),
        ("model", str(run.header.get("model"))),
        ("workspace", str(run.header.get("workspace"))),
        ("begun", str(run.header.get("begun"))),
        *_counts(run),
        ("log", run.path.name),
        *((f"{who}, afterwards", said) for who, said in afterwards),
    )
    listed = element("dl", *[element("div", element("dt", name), element("dd", value)) for name, value in rows])
    problems = [watched.problem, "the last line of the log is torn" if run.torn else None]
    told = [element("p", problem, class_="problem") for problem in problems if problem]
    return element("header", element("h1", title), listed, *told)


def _main(run: RecordedRun, watched: Watched) -> Element:
    legend = [element("span", element("b", sign, class_=sort), f" {meaning}") for sort, sign, meaning in LEGEND]
    steps = element(
        "section", element("h2", "What the b-threads did"), element("p", *legend, class_="legend"),
        lanes(watched.moments), class_="steps",
    )  # fmt: skip
    return element("main", conversation(run.records), steps)


def _title(run: RecordedRun) -> str:
    """Return the first words that were asked for."""
    prompt = next((record["data"].get("text") for record in run.records if record["name"] == "prompt_given"), None)
    return " ".join(str(prompt).split())[:120] if prompt else run.path.name


def _ending(run: RecordedRun) -> tuple[str, str]:
    last: Mapping[str, Any] = run.records[-1] if run.records else {"name": ""}
    if last["name"] != "run_ended":
        return "open", "not yet: the log ends before its run does"
    status = str(last["data"]["status"])
    return status, f"{status} ({last['data']['reason']})"


def _counts(run: RecordedRun) -> tuple[tuple[str, str], ...]:
    def count(name: str) -> int:
        return sum(record["name"] == name for record in run.records)

    refused = sum(
        record["name"] == "call_answered" and record["data"].get("outcome") != "ran" for record in run.records
    )
    spent = [record["data"].get("usage") or {} for record in run.records if record["name"] == "inference_finished"]
    tokens = sum(int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0) for usage in spent)
    counted = (("turns", count("answer_committed")), ("tools run", count("tool_started")), ("not run", refused))
    cost = sum(float(usage.get("cost") or 0) for usage in spent)
    taken = (("tokens", f"{tokens:,}" if tokens else ""), ("cost", f"${cost:.4f}" if cost else ""))
    return (*((name, str(number)) for name, number in counted), *(row for row in taken if row[1]))
