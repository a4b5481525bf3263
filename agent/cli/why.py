"""`bpagent why`: the b-threads that decided about a call, their evidence, and what would have changed the decision."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from agent.cli.build import load_protocols
from agent.cli.display import BY_RULE
from agent.cli.errors import OK, Mistake, say
from agent.cli.prompt import tell_evidence
from agent.cli.runs import find_log, latest_log
from agent.cli.screen import Screen, Tone, cut, screen_on, visible
from agent.history.rebuilding import recorded_preset
from agent.history.what_if import Cause, Objection, find_causes, recorded_decisions
from agent.log.reading import RecordedRun, read_log
from agent.page.wording import action_of, command_of, lasted, reason_of
from agent.vocabulary.encoding import dump, plain
from agent.vocabulary.events import (
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import Declined, Ending, Flaw
from constitution import Level, Policy, Verdict, judge


def execute(arguments: Namespace) -> int:
    """Explain each call with this id. Raises LogError for an unknown call, or a log of another program."""
    path, call = _log_and_call(arguments.log, arguments.call)
    run = read_log(path)
    screen = screen_on(sys.stdout, needed=True)
    if run.integrity:
        say(run.integrity)
    if call is None:
        return _list(run, screen, as_json=arguments.json)
    for cause in find_causes(run, call, load_protocols(arguments.protocol)):
        if arguments.json:
            print(dump(_as_data(cause)))
        else:
            _show(cause, recorded_preset(run).judging_policy(), screen)
    return OK


def _log_and_call(log: str | None, call: str | None) -> tuple[Path, str | None]:
    """Return the log and the call: a single word that names no log is a call of the latest run, if it has it.

    Raises Mistake.
    """
    if log is None or call is not None:
        return find_log(log), call
    try:
        return find_log(log), None
    except Mistake:
        latest = latest_log()
        if latest is None:
            raise
        if not _has_call(latest, log):
            told = f"there is no log {log!r}, and the latest run, {latest.stem}, has no such call"
            raise Mistake(f"{told}; see bpagent runs, and bpagent why") from None
        return find_log(None), log


def _has_call(path: Path, call: str) -> bool:
    return any(record["data"].get("call") == call for record in read_log(path).records)


def _list(run: RecordedRun, screen: Screen, *, as_json: bool) -> int:
    decisions = list(recorded_decisions(run))
    refused = _all_of(run, "drafts_refused", "refusals")
    for refusals in refused:
        reasons = (f"{each['bthread']}: {reason_of(each['because'])}" for each in refusals)
        say(f"every draft of a turn was refused, with its calls: {'; '.join(reasons)}")
    if not decisions and not refused:
        asked = any(_all_of(run, "inference_finished", "calls"))
        flawed = "no call that the model asked for could be put up: each was flawed, or the run ended before"
        say(flawed if asked else "the model asked for no call in this run")
    for call, decision in decisions:
        kind = "not decided" if decision is None else decision.kind
        if as_json:
            print(dump({"call": call.id, "tool": call.tool, "decision": kind}))
        else:
            tone: Tone = "good" if kind.startswith("approved") else "refused"
            action = cut(visible(action_of(call)), screen.width - 36)
            screen.line(f"{visible(call.id):12}  {screen.painted(f'{kind:20}', tone)}  {action}")
    return OK


def _all_of(run: RecordedRun, name: str, key: str) -> list[Any]:
    return [record["data"][key] for record in run.records if record["name"] == name]


def _show(cause: Cause, policy: Policy | None, screen: Screen) -> None:
    screen.line(f"{visible(cause.call.id)}  {visible(command_of(cause.call))}", "action")
    for text in (_became(cause), *_approvals(cause, policy)):
        screen.labelled("", text, "plain")
    for objection in cause.objections:
        _show_objection(objection, screen)
    if cause.objections:
        screen.labelled("", "what would have had to differ:", "title")
        for text in _otherwise(cause):
            screen.labelled("", f"- {text}", "plain")
    if cause.levels:
        told = ", ".join(f"{name} {level.value}" for name, level in cause.levels)
        screen.labelled("", f"the policies on the recorded facts: {told}", "output")
    answered = cause.event(CallAnswered)
    if answered is not None:
        screen.labelled("", f"the model read: {answered.result[:500]}", "output")


def _became(cause: Cause) -> str:
    if cause.event(ToolFinished) is not None:
        finished = cause.event(ToolFinished)
        assert finished is not None
        how = "with an error" if finished.is_error else "without an error"
        return f"ran: {lasted(finished.duration)}, {how}"
    if cause.event(ToolStarted) is not None:
        return "started; the log ends, or its run, before the tool did"
    if cause.event(GateRejected) is not None:
        return "refused at the gate, and never run"
    if cause.event(CallAnswered) is not None:
        late = "after the gate had approved it" if cause.event(GateApproved) else "before the gate saw it"
        return f"refused {late}, and never run"
    return "not decided: the log ends, or its run, before"


def _approvals(cause: Cause, policy: Policy | None) -> list[str]:
    """Return why the call was approved; policy: that of the run, with the rules that its user had added before."""
    asked, answered = cause.event(ApprovalAsked), cause.event(ApprovalAnswered)
    told = []
    if asked is not None:
        told.append(f"a person was asked: {asked.question}")
    if answered is not None:
        said = "yes" if answered.yes else (f"no ({answered.text})" if answered.text else "no")
        told.append(f"the answer was {said}" if answered.present else "no user was present to answer")
    described = cause.event(ActionDescribed)
    if described is not None and policy is not None and judge(described.facts, policy).granted:
        told.append(BY_RULE)
    elif cause.event(GateApproved) is not None:
        told.append("approved: " + ("the person said yes" if answered and answered.yes else "no b-thread refused it"))
    return told


def _show_objection(objection: Objection, screen: Screen) -> None:
    screen.labelled("", f"by b-thread {objection.bthread}: {reason_of(objection.because)}", "refused")
    verdict = _verdict(objection)
    if verdict is not None:
        screen.labelled("", f"rule {verdict.rule} ({verdict.category}), level {verdict.level.value}", "output")
        for line in tell_evidence(verdict):
            screen.labelled("", line, "output")


def _verdict(objection: Objection) -> Verdict | None:
    match objection.because:
        case Verdict() as verdict:
            return verdict
        case Declined(verdict=verdict):
            return verdict
        case _:
            return None


def _otherwise(cause: Cause) -> list[str]:
    """Return the changes that would each have been enough, or why one would not."""
    told = [text for objection in cause.objections for text in _otherwise_for(objection)]
    if len(cause.objections) > 1:
        names = " and ".join(dict.fromkeys(objection.bthread for objection in cause.objections))
        told.append(f"only without all of them: {names}")
    milder = [name for name, level in cause.levels if level is Level.allow]
    if milder and any(_verdict(objection) for objection in cause.objections):
        told.append(f"these policies allow it: {', '.join(milder)}")
    return told


def _otherwise_for(objection: Objection) -> list[str]:
    left = ", ".join(objection.remaining)
    alone = f"it is still refused by {left}" if left else "no b-thread refuses it"
    told = [f"without b-thread {objection.bthread}: {alone}"]
    match objection.because:
        case Declined() if not left:
            told.append("with a yes from a person: it runs")
        case Flaw():
            return ["a whole call: known tool, valid arguments, not cut off"]
        case Ending(reason=reason):
            told.append(f"had the run not been about to end ({reason})")
    return told


def _as_data(cause: Cause) -> dict[str, Any]:
    answered, asked = cause.event(ApprovalAnswered), cause.event(ApprovalAsked)
    answer = cause.event(CallAnswered)
    return {
        "call": plain(cause.call),
        "became": _became(cause),
        "approved": cause.event(GateApproved) is not None,
        "ran": cause.event(ToolStarted) is not None,
        "asked": None if asked is None else asked.question,
        "answered": answered and {"yes": answered.yes, "text": answered.text, "present": answered.present},
        "objections": [
            {"bthread": objection.bthread, "because": plain(objection.because), "remaining": list(objection.remaining)}
            for objection in cause.objections
        ],
        "otherwise": _otherwise(cause) if cause.objections else [],
        "levels": {name: level.value for name, level in cause.levels},
        "answer": None if answer is None else answer.result,
        "steps": [step.number for step in cause.story],
    }
