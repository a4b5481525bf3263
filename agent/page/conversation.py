"""What was said in a run, as its records tell it: prompts, answers, calls and what became of them, and the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agent.page.markup import Element, element
from agent.page.wording import call_line, counted, reason_of

__all__ = ["conversation"]

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
