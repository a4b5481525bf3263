"""The HTML page of a run: its facts, its conversation, and a lane for each b-thread, as a tree of elements."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from attrs import fields

from agent.history.playback import Watched, WatchedStep, watch, watch_program
from agent.log.reading import RecordedRun
from agent.protocols.asking import AddedUp, Distrusted, Suspicious
from agent.vocabulary.calls import background_mark
from agent.vocabulary.messages import one_line
from bp import BThread, Event

Element = ElementTree.Element
Child = Element | str | Mapping[str, str] | None

KEPT = "\n\t"


def element(tag: str, *children: Child, **attributes: str | None) -> Element:
    """Return an element with its children in order; attributes that are None are left out.

    `class_` is the attribute class; a mapping among the children holds attributes whose names are no identifiers.
    """
    made = ElementTree.Element(tag, _named(attributes))
    last: Element | None = None
    for child in children:
        if isinstance(child, str):
            _append_text(made, last, printable(child))
        elif isinstance(child, Mapping):
            made.attrib |= _named(child)
        elif child is not None:
            made.append(child)
            last = child
    return made


def as_html(root: Element) -> str:
    """Return a document; it is valid UTF-8 whatever was put in."""
    return "<!DOCTYPE html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def printable(text: str) -> str:
    """Return `text` with what cannot be seen written as an escape; lines and tabs stay."""
    return "".join(char if char.isprintable() or char in KEPT else _escape(char) for char in text)


def _escape(char: str) -> str:
    return "" if char == "\r" else char.encode("unicode_escape").decode("ascii")


def _named(attributes: Mapping[str, str | None]) -> dict[str, str]:
    return {name.rstrip("_"): printable(value) for name, value in attributes.items() if value is not None}


def _append_text(made: Element, last: Element | None, text: str) -> None:
    if last is None:
        made.text = (made.text or "") + text
    else:
        last.tail = (last.tail or "") + text


STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --line: #d9dee7; --page: #fff; --shade: #f4f6f9;
  --request: #2457c5; --hear: #98a2b3; --hold: #b26a00; --refuse: #c0262d; --good: #1d7a46; --person: #7a2fb5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ef; --soft: #98a2b3; --line: #323a48; --page: #12161d;
  --shade: #1a202a; --request: #82aaff; --hear: #5c6778; --hold: #f0a94b; --refuse: #ff7b80; --good: #6fd39b;
  --person: #cf9bf5; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--page); font: 14px/1.45 system-ui, sans-serif; }
header { padding: 18px 24px 12px; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 4px; font-size: 19px; overflow-wrap: anywhere; }
h2 { margin: 0 0 10px; font-size: 13px; color: var(--soft); font-weight: 600; }
dl { display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 8px 0 0; }
dl div { display: flex; gap: 6px; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.completed { color: var(--good); } .failed, .aborted, .doom_loop { color: var(--refuse); }
.limit, .stopped, .open { color: var(--hold); }
.problem { margin: 10px 0 0; padding: 6px 10px; border-left: 3px solid var(--hold); background: var(--shade); }
main { display: grid; grid-template-columns: minmax(300px, 2fr) minmax(480px, 3fr); }
main > section { padding: 16px 24px; min-width: 0; }
.steps { border-left: 1px solid var(--line); overflow-x: auto; }
a { color: inherit; text-decoration: none; } a:hover { text-decoration: underline; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px/1.45 ui-monospace, monospace;
  unicode-bidi: plaintext; }
code { font: 12.5px ui-monospace, monospace; overflow-wrap: anywhere; }
.conversation > div { display: grid; grid-template-columns: 74px minmax(0, 1fr); margin-bottom: 8px; }
.conversation .label { color: var(--soft); font-size: 12px; padding-top: 1px; }
.conversation pre { max-height: 320px; overflow-y: auto; }
.conversation img { display: block; max-width: 100%; max-height: 320px; margin-top: 6px; }
.person .said { color: var(--person); font-weight: 600; } .agent .said pre { font: inherit; }
.person .said pre { font: inherit; font-weight: 600; }
.reasoning .said pre { color: var(--soft); font-style: italic; font-family: inherit; }
.call .said { border-left: 3px solid var(--request); padding-left: 8px; }
.output .said { border-left: 3px solid var(--line); padding-left: 8px; color: var(--soft); }
.refused .said { border-left: 3px solid var(--refuse); padding-left: 8px; color: var(--refuse); }
.error .said { color: var(--refuse); } .question .said { color: var(--hold); white-space: pre-line; }
.end { border-top: 1px solid var(--line); padding-top: 8px; font-weight: 600; }
table { border-collapse: collapse; font-size: 12.5px; width: 100%; }
thead th { position: sticky; top: 0; background: var(--page); vertical-align: bottom; text-align: left;
  color: var(--soft); font-weight: 600; padding: 4px 6px; border-bottom: 1px solid var(--line); z-index: 1; }
th.lane { padding: 4px 0; width: 24px; text-align: center; font-weight: 500; }
th.lane span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
td { padding: 2px 0; text-align: center; border-left: 1px solid var(--shade); vertical-align: top; cursor: default; }
td.number { color: var(--soft); padding: 2px 6px; text-align: right; width: 40px; }
td.event { text-align: left; padding: 2px 6px; min-width: 250px; }
tr.begins td { border-top: 1px solid var(--line); } tr:hover td { background: var(--shade); }
tr:target td { background: color-mix(in srgb, var(--request) 16%, var(--page)); }
tr.refusal b { color: var(--refuse); } .of { color: var(--soft); font-family: ui-monospace, monospace; }
summary { cursor: pointer; list-style: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  max-width: 400px; }
details[open] summary { white-space: normal; overflow-wrap: anywhere; }
details ul { margin: 4px 0; padding-left: 18px; color: var(--soft); max-width: 400px; overflow-wrap: anywhere; }
details pre { max-height: 260px; max-width: 400px; overflow: auto; background: var(--shade); padding: 6px 8px; }
.closed { color: var(--soft); } .waits { color: var(--hold); } .holds { color: var(--hold); }
.heard { color: var(--hear); } .requested { color: var(--request); } .refused { color: var(--refuse); }
td.refused { font-weight: 700; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 0 12px; font-size: 12px; color: var(--soft); }
@media (max-width: 1000px) { main { grid-template-columns: minmax(0, 1fr); }
  .steps { border-left: 0; border-top: 1px solid var(--line); } }
@media (max-width: 600px) { header, main > section { padding-left: 14px; padding-right: 14px; }
  td.event { min-width: 0; padding: 2px 2px; } td.number { padding: 2px; width: 24px; }
  summary, details ul, details pre { max-width: 52vw; } th.lane { width: 18px; } }
@media print { thead th { position: static; } .conversation pre { max-height: none; } .steps { overflow: visible; } }
"""


LONGEST_ARGUMENT = 160  # characters of a line
WAITING = {"": "the model has not been shown yet what a person said", "at_once": "a follow-up waits"}
"""The reasons of those who speak for people, by the one field that they have, or have not."""

SECONDS = ("deadline_set", "deadline_reached", "backoff_elapsed")


def call_line(call: Mapping[str, Any]) -> str:
    """Return a call in one line: the command of a shell tool, else the tool and its arguments."""
    arguments = call.get("arguments") or {}
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str):
        return one_line(command, LONGEST_ARGUMENT) + background_mark(arguments)
    shown = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in dict(arguments).items())
    return one_line(f"{call.get('tool')} {shown}", LONGEST_ARGUMENT)


def reason_of(because: Any) -> str:
    """Return the reason of a refusal in words: a verdict, an ending, a text, or whatever a protocol gave."""
    if not isinstance(because, Mapping):
        return str(because)
    if isinstance(because.get("verdict"), Mapping):
        told = f" ({because['text']})" if because.get("text") else ""
        said = "no person present" if because.get("present") is False else f"the user said no{told}"
        return f"{said}: {reason_of(because['verdict'])}"
    if not because.keys() - WAITING.keys():
        return WAITING[next(iter(because), "")]
    if (reason := _of_protocols(because)) is not None:
        return reason
    words = [because.get(name) for name in ("explanation", "text", "reason") if because.get(name)]
    rule = f" (rule {because['rule']})" if because.get("rule") else ""
    return f"{words[0]}{rule}" if words else json.dumps(because, ensure_ascii=False)


def _of_protocols(because: Mapping[str, Any]) -> str | None:
    """Return a reason of the laboratory's protocols in its own words, or None for any other."""
    for kind in (Suspicious, Distrusted, AddedUp):
        if because.keys() == {field.name for field in fields(kind)}:
            try:
                return str(kind(**because))
            except (TypeError, ValueError):
                return None
    return None


def counted(number: int, thing: str) -> str:
    """Return how many there are: "1 message", "2 messages"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def summary_of(record: Mapping[str, Any]) -> str:
    """Return what tells a record from others of its kind: its call, its status, or its text, cut to a line; and who
    refused what was wanted instead.
    """
    refusers = dict.fromkeys(refusal["bthread"] for refusal in record.get("refusals") or ())
    by = f"✕ {', '.join(refusers)}" if refusers else ""
    return one_line(f"{_own_summary(record)} {by}", LONGEST_ARGUMENT)


def _own_summary(record: Mapping[str, Any]) -> str:
    data = record["data"]
    call = data.get("call")
    if isinstance(call, Mapping):
        return f"{call['id']} {call_line(call)}"
    if record["name"] in SECONDS:
        return f"{data.get('seconds')} seconds"
    for name in ("call", "status", "draft", "what", "text", "error"):
        if isinstance(data.get(name), str) and data[name]:
            return one_line(data[name], LONGEST_ARGUMENT)
    return ""


LONGEST = 20_000  # characters of one text: a page is for looking at, the log has everything
LARGEST = 3_000_000  # characters of one image, as text
Record = Mapping[str, Any]


def conversation(records: Sequence[Record]) -> Element:
    """Return the conversation, each part linked to its step."""
    parts: list[Element] = []
    said = ""  # the last answer in words, which the end of a run need not say again
    for record in records:
        tell = PARTS.get(record["name"])
        if record["name"] == "run_ended":
            parts.extend(_end(record, said))
        elif tell is not None:
            parts.extend(tell(record))
        if record["name"] == "answer_committed":
            said = str(record["data"]["message"].get("text", ""))
    return element("section", element("h2", "Conversation"), *parts, class_="conversation")


def _spoken(kind: str, label: str, otherwise: str = "") -> Callable[[Record], Iterator[Element]]:
    def tell(record: Record) -> Iterator[Element]:
        data = record["data"]
        yield _part(record, kind, label, _text(data.get("text") or otherwise), *_images(data))

    return tell


def _noted(label: str, words: Callable[[Mapping[str, Any]], str], kind: str = "system") -> Any:
    def tell(record: Record) -> Iterator[Element]:
        yield _part(record, kind, label, _text(words(record["data"])))

    return tell


def _history(record: Record) -> Iterator[Element]:
    messages = record["data"]["messages"]
    listed = [element("div", element("b", message["role"]), ": ", _text(_words(message))) for message in messages]
    folded = element("details", element("summary", counted(len(messages), "earlier message")), *listed)
    yield _part(record, "system", "history", folded)


def _words(message: Mapping[str, Any]) -> str:
    """Return what a message says, and the calls that it makes."""
    calls = (f"{call['name']} {call['arguments']}" for call in message.get("calls") or ())
    return "\n".join(part for part in (message.get("text", ""), *calls) if part)


def _found(record: Record) -> Iterator[Element]:
    if record["data"]["texts"]:
        what = str(record["data"]["what"]).replace("_", "-")
        found = counted(len(record["data"]["texts"]), "message")
        yield _part(record, "system", "heard", f"a hook has {found} for {what}")


def _call(record: Record) -> Iterator[Element]:
    yield _part(record, "call", "action", element("code", call_line(record["data"]["call"])))


def _answer(record: Record) -> Iterator[Element]:
    message = record["data"]["message"]
    if message.get("reasoning"):
        yield _part(record, "reasoning", "reasoning", _text(message["reasoning"]))
    if message.get("text"):
        yield _part(record, "agent", "agent", _text(message["text"]))


def _question(record: Record) -> Iterator[Element]:
    yield _part(record, "question", "question", record["data"]["question"])


def _reply(record: Record) -> Iterator[Element]:
    data = record["data"]
    said = "yes" if data["yes"] else "no" if data.get("present", True) else "nobody was there to ask"
    yield _part(record, "question", "reply", f"{said}: {data['text']}" if data.get("text") else said)


def _refused(record: Record) -> Iterator[Element]:
    for refusal in record["data"]["refusals"]:
        yield _part(record, "refused", "refused", element("b", refusal["bthread"]), ": ", reason_of(refusal["because"]))


def _goes_on(record: Record) -> Iterator[Element]:
    for refusal in record["data"]["refusals"]:
        who = element("b", refusal["bthread"])
        yield _part(record, "system", "goes on", who, ": ", reason_of(refusal["because"]))


def _result(record: Record) -> Iterator[Element]:
    data = record["data"]
    kind = "output" if data.get("outcome", "ran") == "ran" else "refused"
    mark = " error" if data.get("is_error") else ""
    label = "result" if kind == "output" else "told"
    yield _part(record, kind + mark, label, _text(data["result"]), *_images(data))


def _failure(record: Record) -> Iterator[Element]:
    yield _part(record, "system error", "model", _text(record["data"]["error"]))


def _end(record: Record, said: str) -> Iterator[Element]:
    data = record["data"]
    words = [_text(data["text"])] if data.get("text") and data["text"] != said else []
    yield _part(record, "end", "end", f"{data['status']} ({data['reason']})", *words)


def _images(data: Mapping[str, Any]) -> Iterator[Element]:
    """Give the images of a prompt or a result. They are in the page, so that it asks for nothing from anywhere."""
    for image in data.get("images") or ():
        kind, content = image["media_type"], image["content"]
        if len(content) > LARGEST:
            yield element("p", f"an image ({kind}) that is too large for this page; the log has it")
        else:
            yield element("img", src=f"data:{kind};base64,{content}", alt=f"an image ({kind})")


PARTS: Mapping[str, Callable[[Record], Iterator[Element]]] = {
    "history_given": _history,
    "prompt_given": _spoken("person", "prompt"),
    "steering_given": _spoken("person", "steering"),
    "follow_up_given": _spoken("person", "follow-up"),
    "messages_found": _found,
    "stop_asked": _spoken("person", "stop", "what runs may finish"),
    "abort_asked": _spoken("person", "abort", "everything ends now"),
    "deadline_reached": _noted("time", lambda data: f"the {data['seconds']:g} seconds of the run are over"),
    "summary_finished": _noted("summary", lambda data: str(data["text"]), "reasoning"),
    "summary_failed": _noted("summary", lambda data: f"there is none: {data['error']}", "system error"),
    "proposed_action": _call,
    "answer_committed": _answer,
    "approval_asked": _question,
    "approval_answered": _reply,
    "sandbox_lifted": _noted("sandbox", lambda data: f"lifted for this call: {', '.join(data['rights'])}"),
    "gate_rejected": _refused,
    "drafts_refused": _refused,
    "run_continued": _goes_on,
    "call_answered": _result,
    "inference_failed": _failure,
    "completion_declared": _noted("complete", lambda data: str(data["status"])),
}
"""How the records of a kind are told; `run_ended` aside, the others say nothing to anybody."""


def _part(record: Record, kind: str, label: str, *content: Element | str) -> Element:
    step = str(record["step"])
    link = element("a", label, href=f"#step-{step}", title=f"step {step}")
    return element("div", element("div", link, class_="label"), element("div", *content, class_="said"), class_=kind)


def _text(text: str) -> Element:
    if len(text) <= LONGEST:
        return element("pre", text)
    return element("pre", text[:LONGEST], element("i", f"\n… {len(text) - LONGEST} more characters are in the log"))


OUTSIDE = "outside"
LONGEST_DATA = 4_000  # characters of the data of one record

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


def lanes(moments: Sequence[WatchedStep]) -> Element:
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


def _marks(moment: WatchedStep) -> Marks:
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


def _row(moment: WatchedStep, marks: Marks, names: Sequence[str]) -> Element:
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
    cut = carried if len(carried) <= LONGEST_DATA else carried[:LONGEST_DATA] + "\n… the rest is in the log"
    return element("details", name, element("ul", *told), element("pre", cut))


def render_page(run: RecordedRun, threads: Sequence[BThread] = (), afterwards: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of a run, one HTML document that asks for nothing from anywhere and runs no script.

    threads: the b-threads that the run had beside its preset's, for what they heard and held; without them the page
    says that it does not know. afterwards: who said what of the run when it was over.
    """
    watched = watch(run, threads)
    title = _title(run)
    body = element("body", _header(run, watched, title, afterwards), _main(run, watched))
    return as_html(element("html", _head(title), body, lang="en"))


def program_page(bthreads: Sequence[BThread], posts: Sequence[Event] = (), title: str = "A behavioral program") -> str:
    """Return the page of a plain program that runs until it rests, then takes each of `posts`: its steps, no more.

    It ends where a b-thread fails.
    """
    steps = lanes(tuple(watch_program(bthreads, posts)))
    body = element("body", element("header", element("h1", title)), element("main", _steps(steps)))
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
        ("sandbox", str(run.header.get("sandbox") or "off")),
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
    return element("main", conversation(run.records), _steps(lanes(watched.moments)))


def _steps(table: Element) -> Element:
    legend = [element("span", element("b", sign, class_=sort), f" {meaning}") for sort, sign, meaning in LEGEND]
    title = element("h2", "What the b-threads did")
    return element("section", title, element("p", *legend, class_="legend"), table, class_="steps")


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
