"""HTML as a tree of elements whose text cannot break out of them; the style sheet; recorded values in words."""

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from attrs import fields

from agent.protocols.reasons import AddedUp, Distrusted, Suspicious

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
.error .said { color: var(--refuse); } .question .said { color: var(--hold); }
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


LONGEST = 160  # characters of a line
WAITING = {"": "the model has not been shown yet what a person said", "at_once": "a follow-up waits"}
"""The reasons of those who speak for people, by the one field that they have, or have not."""

SECONDS = ("deadline_set", "deadline_reached", "backoff_elapsed")


def call_line(call: Mapping[str, Any]) -> str:
    """Return a call in one line: the command of a shell tool, else the tool and its arguments."""
    arguments = call.get("arguments") or {}
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str):
        return _cut(command)
    shown = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in dict(arguments).items())
    return _cut(f"{call.get('tool')} {shown}")


def reason_of(because: Any) -> str:
    """Return the reason of a refusal in words: a verdict, an ending, a text, or whatever a protocol gave."""
    if not isinstance(because, Mapping):
        return str(because)
    if isinstance(because.get("verdict"), Mapping):
        nobody = because.get("present") is False
        said = "no person present" if nobody else f"the user said no {because.get('text') or ''}".strip()
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
    return _cut(f"{_own_summary(record)} {by}".strip())


def _own_summary(record: Mapping[str, Any]) -> str:
    data = record["data"]
    call = data.get("call")
    if isinstance(call, Mapping):
        return f"{call['id']} {call_line(call)}"
    if record["name"] in SECONDS:
        return f"{data.get('seconds')} seconds"
    for name in ("call", "status", "draft", "what", "text", "error"):
        if isinstance(data.get(name), str) and data[name]:
            return _cut(data[name])
    return ""


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
