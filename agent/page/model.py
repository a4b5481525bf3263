"""The projection of a run for its page: rows (steps), lanes (b-threads), parts (messages and calls), as plain data.

`PageModel.take` folds one step after the other, so that a page can also follow a run.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent.history.changes import FileChange, FileHistory
from agent.history.playback import WatchedStep
from agent.page.wording import (
    WORDING,
    action_of,
    answered,
    counted,
    ending,
    reason_of,
    recorded_call,
    shell_command,
    summary_of,
)
from agent.vocabulary.messages import shortened
from bp import Event

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST = 20_000  # characters of one text: a page is for looking at, the log has everything
LARGEST = 3_000_000  # characters of one image, as text
LONGEST_DATA = 4_000  # characters of the data of one record
LONGEST_DIFF = 400  # lines
LONGEST_LINE = 1_000  # characters
MOST_FILES = 50  # that one call has changed
LARGEST_DIFFS = 1_000_000  # characters of all changes of files

OUTSIDE = "outside"
MARKS = (
    ("x", "✕", "refused", "refused what was requested, and said why"),
    ("q", "●", "requested", "requested the event, or brought it from outside"),
    ("c", "⊗", "closed", "was ended by the event"),
    ("w", "◌", "waits", "requests an event that is held back"),
    ("b", "■", "holds", "holds back an event that another b-thread requests"),
    ("h", "○", "heard", "waited for the event, and went on"),
)
"""Letter, sign, class and meaning of each mark; of several in one place the first in this table is shown."""

Record = Mapping[str, Any]
Data = Mapping[str, Any]
Part = dict[str, Any]


class PageModel:
    """Everything that the page of a run shows, in the order in which it happened.

    rows: one for each step. parts: the items of the conversation, each with the number of its row. turns: the rows
    at which turns begin. evidence: `[part, start, end]`, the characters of a command on which a verdict rests.
    """

    def __init__(self, told: Callable[[Event], str] = attrgetter("name"), files: FileHistory | None = None) -> None:
        """Begin without rows. told: an event in words. files: those of the run, without records yet."""
        self._event_in_words, self._files_of_run = told, files
        self._room = LARGEST_DIFFS
        self.lanes: dict[str, int] = {OUTSIDE: 0}
        self.rows: list[dict[str, Any]] = []
        self.parts: list[Part] = []
        self.turns: list[int] = []
        self.evidence: list[list[int]] = []
        self.open: dict[str, list[str]] = {}  # by call: the action and the question that has no answer yet
        self.ended = False
        self._calls: dict[str, int] = {}  # the part in which a call was proposed
        self._took: dict[str, float | None] = {}  # milliseconds of the latest draft of a name
        self._files: dict[str, str] = {}  # what is known of the content of files
        self._answered = False  # the next prompt or inference begins a turn
        self._said = ""  # the last answer in words, not to be repeated at the end of a run

    def take(self, moment: WatchedStep) -> None:
        """Record one step."""
        record, row = moment.record, len(self.rows)
        self._begin_turn(record["name"], row)
        first, data = len(self.parts), record["data"]
        if record["name"] == "inference_finished":  # its duration is shown beside the committed answer
            self._took[data["draft"]] = data.get("duration")
        self.parts += [{"row": row, **part} for part in self._told(record)]
        self._note(record, first)
        self._show_files(record, row)
        call = data.get("call")
        about = self._calls.get(call["id"] if isinstance(call, Mapping) else str(call))
        shown = {
            "step": record["step"],
            "name": record["name"],
            "of": summary_of(record),
            "marks": self.marks(moment),
            "data": _cut(data),
            "part": first if len(self.parts) > first else about,
            **({"spent": spent} if (spent := _spent(record)) else {}),
        }
        self.rows.append({key: value for key, value in shown.items() if value is not None})

    def data(self, rows: int = 0, parts: int = 0, evidence: int = 0) -> dict[str, Any]:
        """Return the data for a page, without those at the beginning that it has already."""
        return {
            "lanes": list(self.lanes),
            "rows": self.rows[rows:],
            "parts": [  # text of the agent is markdown
                {**part, "tree": tree_of(part["text"])} if part["kind"] == "agent" else part
                for part in self.parts[parts:]
            ],
            "turns": self.turns,
            "evidence": self.evidence[evidence:],
            "open": self.open,
            "ended": self.ended,
        }

    def _begin_turn(self, name: str, row: int) -> None:
        if not self.turns or (name in ("prompt_given", "inference_requested") and self._answered):
            self.turns.append(row)
            self._answered = False
        elif name in ("answer_committed", "run_ended"):
            self._answered = True

    def _note(self, record: Record, first: int) -> None:
        name, data = record["name"], record["data"]
        match name:
            case "proposed_action":
                self._calls[data["call"]["id"]] = first
            case "approval_asked":
                part = self._calls.get(data["call"])
                self.open[data["call"]] = ["" if part is None else self.parts[part]["text"], data["question"]]
            case "approval_answered":
                self.open.pop(data["call"], None)
            case "gate_rejected":
                self._underline(data)
            case "prompt_given":
                self.ended = False
            case "run_ended":
                self.ended, self.open = True, {}
            case "answer_committed" if data["message"].get("text"):
                self._said = data["message"]["text"]

    def _show_files(self, record: Record, row: int) -> None:
        """Add the files that a call changed to its answer; what others changed between calls is a part of its own."""
        if self._files_of_run is None:
            return
        self._files_of_run.take(record)
        changed = self._files_of_run.changed_at(record)
        if not changed:
            return
        if record["name"] == "snapshot_taken":
            words = f"{counted(len(changed), 'file')} changed since the last call, {changed[0].who}"
            self.parts.append({"row": row, **_part("system", "files", words), "files": self._file_rows(changed)})
            return
        proposed, answer = self.parts[self._calls[record["data"]["call"]]], self.parts[-1]
        answer["undo"] = self.rows[proposed["row"]]["step"]
        if len(changed) > 1 or not proposed.get("diff"):  # else the call shows it
            answer["files"] = self._file_rows(changed)

    def _file_rows(self, changed: Sequence[FileChange]) -> list[dict[str, Any]]:
        """Return the changes of files, as many lines as the page has room for, and how many were left out."""
        rows = []
        for each in changed[:MOST_FILES]:
            whole = each.lines[2:] if each.lines[0].startswith("--- a/") else each.lines  # the path stands above
            lines = [shortened(line, LONGEST_LINE) for line in whole[:LONGEST_DIFF]]
            size = sum(map(len, lines))
            lines = lines if size <= self._room else []
            self._room -= size if lines else 0
            rows.append({"path": each.path, "kind": each.kind, "lines": lines, "more": len(whole) - len(lines)})
        if (left := len(changed) - MOST_FILES) > 0:
            rows.append({"path": f"{counted(left, 'more file')} changed", "kind": "", "lines": [], "more": 0})
        return rows

    def _underline(self, data: Data) -> None:
        part = self._calls.get(str(data["call"]))
        for refusal in data["refusals"]:
            because = refusal["because"]
            verdict = because.get("verdict", because) if isinstance(because, Mapping) else {}
            for found in verdict.get("evidence") or ():
                if part is not None and found["end"] > found["start"]:
                    self.evidence.append([part, found["start"], found["end"]])

    def marks(self, moment: WatchedStep) -> list[list[Any]]:
        """Return the marks of a step: the lane of each b-thread, the letter, and further text."""
        marks: list[tuple[str, ...]] = [(moment.record["origin"], "q")] if moment.record else []
        marks += [(name, "h") for name in moment.heard]
        marks += [(name, "c") for name in moment.closed]
        for refusal in moment.record.get("refusals") or ():
            marks.append((refusal["bthread"], "x", reason_of(refusal["because"])))
        for held in moment.held:
            event = self._event_in_words(held.event)
            marks.append((held.requester, "w", event))
            for blocker in held.blockers:
                why = "" if blocker.because is None else f": {blocker.because}"
                marks.append((blocker.bthread, "b", f"{event} of {held.requester}{why}"))
        return [[self.lane(name), *rest] for name, *rest in dict.fromkeys(marks)]

    def lane(self, name: str) -> int:
        """Return the number of a lane, which begins where it is needed for the first time."""
        return self.lanes.setdefault(name, len(self.lanes))

    def _told(self, record: Record) -> Iterator[Part]:
        match record["name"]:
            case "run_ended":
                text = record["data"].get("text")
                last = f"\n{text}" if text and text != self._said else ""
                yield _part("end", "end", f"{ending(record['data'])}{last}")
            case "proposed_action":
                yield self._proposed(record["data"]["call"])
            case "call_answered":
                self._learn_content(record["data"])
                yield self._answered_with(record["data"])
            case "answer_committed":
                yield from _answer(record["data"], self._took.get(record["data"]["draft"]))
            case name if name in WORDING:
                label, kind, texts = WORDING[name]
                for text in texts(record["data"]):
                    yield {**_part(kind, label, text), **_images(record["data"])}

    def _proposed(self, proposed: Mapping[str, Any]) -> Part:
        """Return a call; if it changes a file, with the change."""
        call, arguments = recorded_call(proposed), proposed.get("arguments") or {}
        path, content = str(arguments.get("path")), arguments.get("content")
        part = _part("call", "action", shell_command(call) or action_of(call))
        if isinstance(content, str):
            return {**part, "diff": _changes(self._files.get(path, ""), content)}
        if isinstance(arguments.get("oldText"), str) and isinstance(arguments.get("newText"), str):
            return {**part, "diff": _changes(arguments["oldText"], arguments["newText"])}
        return part

    def _answered_with(self, data: Data) -> Part:
        """Return the answer to a call, without a change that is shown with the call already."""
        result, outcome = data["result"], str(data.get("outcome", "ran"))
        label, text = answered(outcome, result["text"])
        number = self._calls.get(str(data["call"]))
        if number is not None and self.parts[number].get("diff") and not result.get("is_error"):
            text, _, made = text.partition("\n--- ")
            self.parts[number]["diff"] = made.splitlines()[2:][:LONGEST_DIFF] or self.parts[number]["diff"]
        kind = ("output" if outcome == "ran" else "refused") + (" error" if result.get("is_error") else "")
        return {**_part(kind, label, text), **_images(result), **_lasted(result.get("duration"))}

    def _learn_content(self, data: Data) -> None:
        """Remember the content of a file that was read or written whole, to show the changes of later calls."""
        row = self._calls.get(str(data["call"]))
        call = None if row is None else self.rows[self.parts[row]["row"]]["data"]
        if not isinstance(call, dict) or data["result"].get("is_error"):
            return
        arguments = call["call"].get("arguments") or {}
        if set(arguments) == {"path"} and call["call"].get("category") == "read":
            self._files[str(arguments["path"])] = str(data["result"]["text"])
        elif isinstance(arguments.get("content"), str):
            self._files[str(arguments.get("path"))] = arguments["content"]


def _changes(old: str, new: str) -> list[str]:
    """Return the lines of a change, each after `+`, `-` or a blank, with three lines around."""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3))[2:][:LONGEST_DIFF]


def _cut(data: Data) -> Any:
    """Return the data of a record, as shortened text if they are long."""
    text = json.dumps(data, ensure_ascii=False)
    return data if len(text) <= LONGEST_DATA else text[:LONGEST_DATA] + "\n… the rest is in the log"


def _spent(record: Record) -> dict[str, float]:
    """Return the amounts that a step adds: milliseconds of models and tools, tokens, US dollars, calls, refusals."""
    data = record["data"]
    result = data["result"] if record["name"] == "tool_finished" else {}
    usage = data.get("usage") or result.get("details", {}).get("usage") or {}
    spent = {
        "model" if record["name"] == "inference_finished" else "tools": data.get("duration", result.get("duration")),
        "in": usage.get("input_tokens"),
        "out": usage.get("output_tokens"),
        "cost": usage.get("cost"),
        "calls": int(record["name"] == "proposed_action"),
        "refused": int(bool(record.get("refusals"))),
    }
    return {name: value for name, value in spent.items() if value}


def _part(kind: str, label: str, text: str) -> Part:
    more = len(text) - LONGEST
    shown = text if more <= 0 else f"{text[:LONGEST]}\n… {more} more characters are in the log"
    return {"kind": kind, "label": label, "text": shown}


def _answer(data: Data, took: float | None) -> Iterator[Part]:
    """Yield the reasoning and the text of a model; the first of them has the duration of the answer."""
    message, lasted = data["message"], _lasted(took)
    if message.get("reasoning"):
        yield {**_part("reasoning", "reasoning", message["reasoning"]), **lasted}
        lasted = {}
    if message.get("text"):
        yield {**_part("agent", "agent", message["text"]), **lasted}


def _lasted(milliseconds: float | None) -> dict[str, float]:
    return {"ms": milliseconds} if milliseconds else {}


def _images(data: Data) -> dict[str, list[str]]:
    """Return the images of a prompt or a result. They are in the page, so that it loads no other resources."""
    images = [
        f"data:{image['media_type']};base64,{image['content']}" if len(image["content"]) <= LARGEST else ""
        for image in data.get("images") or ()
    ]
    return {"images": images} if images else {}


# Markdown as a tree that the script of a page draws; text of a model stays text in it.

NESTED = 20  # nested blocks; a text with more of them is shown as it is
DEEPEST = 60  # nested elements; deeper ones are put into the deepest allowed

Tree = list[Any]
"""An element: its tag, its attributes, then its children, each a text or a tree."""


def tree_of(text: str) -> Tree:
    """Return the tree of a markdown text. All of it is visible: HTML stays text, links and images show targets."""
    from markdown_it import MarkdownIt  # not needed where lanes are drawn in a terminal

    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTED})
    blocks = reader.enable(["table", "strikethrough"]).disable("reference").parse(text)
    if any(block.level >= NESTED - 1 for block in blocks):  # the parser drops deeper blocks
        return ["div", {}, text]
    stack: list[Tree] = [["div", {"class": "markdown"}]]
    leads_to = ""
    for token in _flat(blocks):
        if token.nesting > 0:
            leads_to = _address(token, "href") or leads_to
            stack.append(_begun(token, stack[-1]) if len(stack) < DEEPEST else stack[-1])
        elif token.nesting < 0:
            closed = stack.pop()
            if token.type == "link_close" and closed[2:] != [leads_to]:
                stack[-1].append(f" ({leads_to})")
        else:
            stack[-1].append(_leaf(token))
    return stack[0]


def _flat(blocks: Iterable["Token"]) -> Iterator["Token"]:
    """Yield the visible tokens of blocks, each followed by those of its text."""
    for token in blocks:
        if token.type == "inline":
            yield from token.children or ()
        elif not token.hidden:
            yield token


def _begun(token: "Token", parent: Tree) -> Tree:
    start = token.attrGet("start")
    made: Tree = ["span" if token.tag == "a" else token.tag, {} if start is None else {"start": start}]
    parent.append(made)
    return made


def _leaf(token: "Token") -> Tree | str:
    match token.type:
        case "fence" | "code_block":
            language = [["small", {}, f"{token.info.strip()}\n"]] if token.info.strip() else []
            return ["pre", {}, *language, token.content.rstrip("\n")]
        case "code_inline":
            return ["code", {}, token.content]
        case "hr":
            return ["hr", {}]
        case "softbreak" | "hardbreak":
            return "\n"
        case "image":
            return f"{token.content} ({_address(token, 'src')})"
        case _:
            return token.content


def _address(token: "Token", name: str) -> str:
    title = token.attrGet("title")
    return f"{token.attrGet(name) or ''}{f' {title!r}' if title else ''}"
