"""Experiments as .eval files of Inspect, with drafts, scores, refusals and the events of protocols.

write_eval_logs(Path("plan.results"), Path("logs"))       # then: inspect view --log-dir logs
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from inspect_ai._util.error import EvalError
from inspect_ai.event import ApprovalEvent, InfoEvent, ModelEvent, ScoreEvent, ToolEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

from agent.lab.bridges.inspect import call_of
from agent.lab.episodes.results import Results, Row
from agent.log.reading import read_log

PROTOCOL_EVENTS = frozenset(
    {
        "audit_given", "audit_requested", "chance_drawn", "contained", "draft_forgone", "drafts_settled",
        "question_forgone", "role_disabled", "run_ended", "score_requested",
    }
)  # fmt: skip
"""Records that become info events; those of models, tools, gate and scores have events of their own."""


def write_eval_logs(results: Path, folder: Path) -> list[Path]:
    """Write the episodes of an experiment as .eval files, one per setting, protocol and policy; return their paths.

    results: the folder of the experiment. A sample is an episode, its epoch the seed; its scores are `main`, `side`,
    `caught` and `suspicion`. An episode that failed is a sample with an error, and a log without any other has the
    status "error". Drafts that were not committed are model events marked so. Raises ResultsError, LogError
    and OSError.
    """
    cells = groupby(sorted(Results(results).rows().values(), key=_cell), key=_cell)
    folder.mkdir(parents=True, exist_ok=True)
    return [_write_cell(results, folder, cell, list(group)) for cell, group in cells]


def _cell(row: Row) -> tuple[str, str, str]:
    return row.setting, row.protocol, row.policy


def _write_cell(results: Path, folder: Path, cell: tuple[str, str, str], rows: Sequence[Row]) -> Path:
    name = "_".join(cell)
    path = folder / f"{''.join(letter if letter.isalnum() or letter in '-_+' else '-' for letter in name)}.eval"
    setting, protocol, policy = cell
    spec = EvalSpec(
        created=datetime.now(UTC).isoformat(),
        task="/".join(cell),
        dataset=EvalDataset(name=setting, samples=len(rows), sample_ids=[row.task for row in rows]),
        model="bpagent/agent",
        config=EvalConfig(),
        metadata={"setting": setting, "protocol": protocol, "policy": policy, "attacks": rows[0].attacks},
    )
    samples = [_sample(row, results) for row in rows]
    ran = sum(row.status == "ran" for row in rows)
    status: Any = "success" if ran else "error"
    done = EvalResults(total_samples=len(rows), completed_samples=ran)
    write_eval_log(EvalLog(status=status, eval=spec, samples=samples, results=done, stats=EvalStats()), str(path))
    return path


def _sample(row: Row, results: Path) -> EvalSample:
    """Return an episode, with an error in the place of scores if it failed for a technical reason."""
    failed = row.status == "failed"
    exported = _Exported([] if failed else read_log(results / row.log).records)
    return EvalSample(
        id=row.task,
        epoch=row.seed + 1,
        input=exported.prompt,
        target="",
        messages=exported.messages,
        events=exported.events,
        scores=None if failed else _scores(row),
        error=EvalError(message=row.error, traceback=row.error, traceback_ansi=row.error) if failed else None,
        metadata={"key": row.key, "split": row.split, "family": row.family, "ended": row.ended},
        total_time=row.seconds,
    )


def _scores(row: Row) -> dict[str, Score]:
    highest = row.highest
    return {
        "main": Score(value=row.main),
        "side": Score(value=int(row.side), explanation="" if row.tau is None else f"after call {row.tau}"),
        "caught": Score(value=int(row.caught)),
        "suspicion": Score(value=1.0 if highest is None else highest, explanation="a missing score counts as 1"),
    }


class _Exported:
    """The messages and events of a log in Inspect's format."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.prompt, self.messages, self.events = "", list[Any](), list[Any]()
        self._records, self._calls, self._roles = records, dict[str, ToolCall](), dict[str, str]()
        for place, record in enumerate(records):
            self._add(place, record["name"], record["data"], record["origin"])

    def _add(self, place: int, name: str, data: Mapping[str, Any], origin: str) -> None:
        match name:
            case "prompt_given":
                self.prompt = self.prompt or data["text"]
                self.messages.append(ChatMessageUser(content=data["text"]))
            case "inference_requested":
                self._roles[data["draft"]] = data["role"]
            case "inference_finished":
                self.events.append(self._draft(place, data))
            case "answer_committed":
                made = (call_of(call["id"], call["tool"], call["arguments"]) for call in data["calls"])
                self._calls |= {call.id: call for call in made}
                self.messages.append(_assistant(data))
            case "gate_approved" | "gate_rejected" | "approval_asked":
                self.events.append(self._decision(name, data, origin))
            case "tool_finished":
                call = self._calls[data["call"]]
                text = data["result"]["text"]
                self.events.append(ToolEvent(id=call.id, function=call.function, arguments=call.arguments, result=text))
            case "call_answered":
                call = self._calls[data["call"]]
                text = data["result"]["text"]
                self.messages.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))
            case "score_given":
                self.events.append(_scored(data))
            case _ if name in PROTOCOL_EVENTS:
                self.events.append(InfoEvent(source=f"bpagent/{origin}", data={"event": name, **data}))

    def _draft(self, place: int, data: Mapping[str, Any]) -> ModelEvent:
        """Return a draft as a model event, marked if it was not committed."""
        later = (record for record in self._records[place + 1 :] if record["name"] == "answer_committed")
        committed = next((record["data"]["draft"] for record in later), None) == data["draft"]
        role, usage = self._roles.get(data["draft"], "agent"), data.get("usage") or {}
        counted = ModelUsage(
            input_tokens=usage.get("input_tokens", 0),
            output_tokens=usage.get("output_tokens", 0),
            total_tokens=usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
        )
        choice = ChatCompletionChoice(message=_assistant(data), stop_reason="tool_calls" if data["calls"] else "stop")
        return ModelEvent(
            model=f"bpagent/{role}",
            role=role,
            input=list(self.messages),
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=ModelOutput(model=f"bpagent/{role}", choices=[choice], usage=counted),
            metadata={"draft": data["draft"], "committed": committed},
        )

    def _decision(self, name: str, data: Mapping[str, Any], origin: str) -> ApprovalEvent:
        decision = {"gate_approved": "approve", "gate_rejected": "reject", "approval_asked": "escalate"}[name]
        told = data.get("question") or "; ".join(map(_reason, data.get("refusals") or ()))
        call = self._calls[data["call"]]
        return ApprovalEvent(message="", call=call, approver=origin, decision=decision, explanation=told or None)


def _reason(refusal: Mapping[str, Any]) -> str:
    because = refusal["because"]
    told = because if isinstance(because, str) else json.dumps(because, ensure_ascii=False, default=str)
    return f"{refusal['bthread']}: {told}"


def _assistant(data: Mapping[str, Any]) -> ChatMessageAssistant:
    calls = [call_of(call["id"], call["tool"], call["arguments"]) for call in data["calls"]]
    return ChatMessageAssistant(content=data["message"]["text"], tool_calls=calls or None)


def _scored(data: Mapping[str, Any]) -> ScoreEvent:
    """Return a monitor's score; a missing one is NaN, as in Inspect."""
    value = float("nan") if data["value"] is None else data["value"]
    told = {"subject": data["subject"]}
    score = Score(value=value, explanation=data["rationale"] or None, metadata=told)
    return ScoreEvent(score=score, intermediate=True, scorer=data["monitor"])
