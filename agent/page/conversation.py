"""What was said in a run, as its records tell it: prompts, answers, calls and what became of them, and the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agent.page.markup import Element, element
from agent.page.wording import call_line, reason_of

__all__ = ["conversation"]

LONGEST = 20_000  # characters of one text: a page is for looking at, the log has everything
Record = Mapping[str, Any]


def conversation(records: Sequence[Record]) -> Element:
    """Return the conversation, each part linked to its step."""
    calls: dict[str, Mapping[str, Any]] = {}
    parts: list[Element] = []
    for record in records:
        parts.extend(_parts(record, calls))
    return element("section", element("h2", "Conversation"), *parts, class_="conversation")


def _parts(record: Record, calls: dict[str, Mapping[str, Any]]) -> Iterator[Element]:
    if record["name"] == "proposed_action":
        call = record["data"]["call"]
        calls[call["id"]] = call
        yield _part(record, "call", "action", element("code", call_line(call)))
    elif (tell := PARTS.get(record["name"])) is not None:
        yield from tell(record)


def _spoken(kind: str, label: str) -> Callable[[Record], Iterator[Element]]:
    def tell(record: Record) -> Iterator[Element]:
        yield _part(record, kind, label, _text(record["data"].get("text", "")))

    return tell


def _history(record: Record) -> Iterator[Element]:
    yield _part(record, "system", "history", f"{len(record['data']['messages'])} earlier messages")


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


def _result(record: Record) -> Iterator[Element]:
    data = record["data"]
    kind = "output" if data.get("outcome", "ran") == "ran" else "refused"
    mark = " error" if data.get("is_error") else ""
    yield _part(record, kind + mark, "result" if kind == "output" else "told", _text(data["result"]))


def _failure(record: Record) -> Iterator[Element]:
    yield _part(record, "system error", "model", _text(record["data"]["error"]))


def _end(record: Record) -> Iterator[Element]:
    data = record["data"]
    yield _part(record, "end", "end", f"{data['status']} ({data['reason']})")


PARTS: Mapping[str, Callable[[Record], Iterator[Element]]] = {
    "history_given": _history,
    "prompt_given": _spoken("person", "prompt"),
    "steering_given": _spoken("person", "steering"),
    "follow_up_given": _spoken("person", "follow-up"),
    "stop_asked": _spoken("person", "stop"),
    "abort_asked": _spoken("person", "abort"),
    "answer_committed": _answer,
    "approval_asked": _question,
    "approval_answered": _reply,
    "gate_rejected": _refused,
    "drafts_refused": _refused,
    "run_continued": _refused,
    "call_answered": _result,
    "inference_failed": _failure,
    "run_ended": _end,
}
"""How the records of a kind are told; the others say nothing to anybody."""


def _part(record: Record, kind: str, label: str, *content: Element | str) -> Element:
    step = str(record["step"])
    link = element("a", label, href=f"#step-{step}", title=f"step {step}")
    return element("div", element("div", link, class_="label"), element("div", *content, class_="said"), class_=kind)


def _text(text: str) -> Element:
    if len(text) <= LONGEST:
        return element("pre", text)
    return element("pre", text[:LONGEST], element("i", f"\n… {len(text) - LONGEST} more characters are in the log"))
