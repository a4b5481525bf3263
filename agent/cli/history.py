"""`bpagent replay`, `why`, `what-if`: a recorded run, played back by its program or a changed one; and `convert`.

`why` tells the b-threads that decided about a call, their evidence, and what would have changed the decision.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict

from agent.cli.arguments import called
from agent.cli.build import load_protocols
from agent.cli.display import BY_RULE
from agent.cli.errors import DIFFERENT, OK, USAGE, Mistake, say
from agent.cli.prompt import tell_evidence
from agent.cli.runs import find_log, find_logs, latest_log
from agent.cli.screen import Screen, Tone, cut, screen_on, visible
from agent.history.playback import Difference, replay
from agent.history.rebuilding import changed_bthreads, rebuild, recorded_preset
from agent.history.what_if import Cause, Decision, Objection, WhatIf, find_causes, recorded_decisions, what_if
from agent.log.convert import convert
from agent.log.reading import LogError, RecordedRun, read_log
from agent.page import what_if_page
from agent.page.wording import action_of, command_of, counted, lasted, reason_of
from agent.presets.configuration import load_policy
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
from agent.vocabulary.messages import one_line
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BProgram
from constitution import Level, Policy, Verdict, judge


def execute(arguments: Namespace) -> int:
    """Look back at recorded runs. Raises LogError for an invalid log, or one of another program, and Mistake."""
    commands = {"replay": _replay, "why": _why, "what-if": _what_if, "convert": _convert}
    return commands[arguments.command](arguments, screen_on(sys.stdout, needed=True))


# Replay: the program of a log must give the same records for the same external events.

LONGEST = 80  # characters of a value that differs


def _replay(arguments: Namespace, screen: Screen) -> int:
    run = read_log(find_log(arguments.log))
    program = rebuild(run, load_protocols(arguments.protocol))
    if run.torn and not arguments.json:
        screen.line(f"the last line ({len(run.records) + 2}) is torn; it was left out")
    code = _replayed(run, program, screen, as_json=arguments.json)
    if run.integrity and not arguments.json:
        screen.line(visible(run.integrity))
    return DIFFERENT if run.misfit else code


def _replayed(run: RecordedRun, program: BProgram, screen: Screen, *, as_json: bool) -> int:
    try:
        result = replay(run, program)
    except LogError as error:  # an invalid record
        screen.line(f"different: {visible(str(error))}")
        return DIFFERENT
    difference = result.difference
    equal = f"equal: {counted(result.equal, 'record')}, replayed without model, tools or network; {_end(run)}"
    if as_json:
        print(dump({"equal": result.equal, "difference": difference and asdict(difference)}))
    else:
        for line in told_difference(run, difference) if difference else (equal,):
            screen.line(line)
    return DIFFERENT if difference else OK


def told_difference(run: RecordedRun, difference: Difference) -> list[str]:
    """Return the first difference in words: the record of the log, and that of its b-threads."""
    then, now = said_differently(difference)
    equal = counted(difference.number - 1, "record")
    return [
        f"different: after {equal} that are equal, line {difference.number + 1} says {then}; its b-threads say {now}",
        f"  both sides: {called('replay', str(run.path), '--json')}",
    ]


def said_differently(difference: Difference) -> tuple[str, str]:
    """Return the parts of the recorded side of a difference that the replayed one lacks, and the reverse."""
    recorded, replayed = difference.recorded, difference.replayed
    if recorded is None or replayed is None or recorded["name"] != replayed["name"]:
        return _kind(recorded), _kind(replayed)
    sides = [{**side, **side["data"]} for side in (recorded, replayed)]
    keys = [key for key in {**sides[0], **sides[1]} if key != "data" and sides[0].get(key) != sides[1].get(key)]
    then, now = (", ".join(f"{key} {one_line(dump(side.get(key)), LONGEST)}" for key in keys) for side in sides)
    return f"{_kind(recorded)} with {then}", now


def _kind(record: Mapping[str, Any] | None) -> str:
    return "nothing" if record is None else visible(record["name"])


def _end(run: RecordedRun) -> str:
    last = run.records[-1] if run.records else None
    if last is None or last["name"] != "run_ended":
        return "the log ends before its run does"
    return f"the run {last['data']['status']} ({last['data']['reason']})"


# Why: each call with its decision, or the causes of one.


def _why(arguments: Namespace, screen: Screen) -> int:
    path, call = _log_and_call(arguments.log, arguments.call)
    run = read_log(path)
    if run.integrity:
        say(run.integrity)
    if call is None:
        return _list_calls(run, screen, as_json=arguments.json)
    for cause in find_causes(run, call, load_protocols(arguments.protocol)):
        if arguments.json:
            print(dump(_cause_as_data(cause)))
        else:
            _show_cause(cause, recorded_preset(run).judging_policy(), screen)
    return OK


def _log_and_call(log: str | None, call: str | None) -> tuple[Path, str | None]:
    """Return the log and the call: a single word that names no log is a call of the latest run, if it has it.

    Raises Mistake.
    """
    try:
        return find_log(log), call
    except Mistake:
        latest = latest_log()
        if log is None or call is not None or latest is None:
            raise
    if not any(record["data"].get("call") == log for record in read_log(latest).records):
        told = f"there is no log {log!r}, and the latest run, {latest.stem}, has no such call"
        raise Mistake(f"{told}; see bpagent runs, and bpagent why")
    return find_log(None), log


def _list_calls(run: RecordedRun, screen: Screen, *, as_json: bool) -> int:
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


def _show_cause(cause: Cause, policy: Policy | None, screen: Screen) -> None:
    screen.line(f"{visible(cause.call.id)}  {visible(command_of(cause.call))}", "action")
    for text in (_became(cause), *_approvals(cause, policy)):
        screen.labelled("", text, "plain")
    for objection in cause.objections:
        screen.labelled("", f"by b-thread {objection.bthread}: {reason_of(objection.because)}", "refused")
        verdict = _verdict(objection)
        if verdict is not None:
            rule = f"rule {verdict.rule} ({verdict.category}), level {verdict.level.value}"
            for line in (rule, *tell_evidence(verdict)):
                screen.labelled("", line, "output")
    if cause.objections:
        screen.labelled("", "what would have had to differ:", "title")
        for text in _otherwise(cause):
            screen.labelled("", f"- {text}", "plain")
    if cause.levels:
        told = ", ".join(f"{name} {level.value}" for name, level in cause.levels)
        screen.labelled("", f"the policies on the recorded facts: {told}", "output")
    answered = cause.event(CallAnswered)
    if answered is not None:
        screen.labelled("", f"the model read: {answered.result.text[:500]}", "output")


def _became(cause: Cause) -> str:
    if finished := cause.event(ToolFinished):
        result = finished.result
        if not result.duration:  # no tool told its end
            return f"started, and ran for a time that is not known: {result.text.partition(':')[0]}"
        return f"ran: {lasted(result.duration)}, {'with' if result.is_error else 'without'} an error"
    if cause.event(ToolStarted):
        return "started; the log ends, or its run, before the tool did"
    if cause.event(GateRejected):
        return "refused at the gate, and never run"
    if cause.event(CallAnswered):
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


def _verdict(objection: Objection) -> Verdict | None:
    because = objection.because
    if isinstance(because, Declined):
        return because.verdict
    return because if isinstance(because, Verdict) else None


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
    left = ", ".join(name for name in objection.remaining if name not in objection.asking)
    asks = f"{', '.join(objection.asking)} asks a person" if objection.asking else "no b-thread refuses it"
    alone = f"it is still refused by {left}" if left else asks
    told = [f"without b-thread {objection.bthread}: {alone}"]
    match objection.because:
        case Declined() if not objection.remaining:
            told.append("with a yes from a person: it runs")
        case Flaw():
            return ["a whole call: known tool, valid arguments, not cut off"]
        case Ending(reason=reason):
            told.append(f"had the run not been about to end ({reason})")
    return told


def _cause_as_data(cause: Cause) -> dict[str, Any]:
    answered, asked = cause.event(ApprovalAnswered), cause.event(ApprovalAsked)
    answer = cause.event(CallAnswered)
    return {
        "call": plain(cause.call),
        "became": _became(cause),
        "approved": cause.event(GateApproved) is not None,
        "ran": cause.event(ToolStarted) is not None,
        "asked": asked and asked.question,
        "answered": answered and {"yes": answered.yes, "text": answered.text, "present": answered.present},
        "objections": [
            {"bthread": objection.bthread, "because": plain(objection.because), "remaining": list(objection.remaining)}
            for objection in cause.objections
        ],
        "otherwise": _otherwise(cause) if cause.objections else [],
        "levels": {name: level.value for name, level in cause.levels},
        "answer": answer and answer.result.text,
        "steps": [step.number for step in cause.story],
    }


# What-if: the calls of runs judged again, under another policy, with other protocols, or without a b-thread.


def _what_if(arguments: Namespace, screen: Screen) -> int:
    """Judge each log again; the exit code is 2 when a log could not be judged."""
    paths = find_logs(arguments.log)
    if missing := [path for path in paths if not path.exists()]:
        raise Mistake(f"cannot read the log {missing[0]}: No such file or directory")
    if not (arguments.policy or arguments.protocol or arguments.without):
        raise Mistake("nothing would differ; name a --policy, a --protocol, or a b-thread to leave out: --without NAME")
    policy = load_policy(arguments.policy) if arguments.policy is not None else None
    threads = load_protocols(arguments.protocol)
    results: list[WhatIf] = []
    code = OK
    for path in paths or [find_log(None)]:
        try:
            run = read_log(path)
            bthreads = changed_bthreads(run, policy=policy, threads=threads, without=arguments.without)
            results.append(what_if(run, bthreads))
        except LogError as error:
            say(str(error))
            code = USAGE
            continue
        if arguments.json:
            print(dump(_changes_as_data(results[-1])))
        else:
            _show_changes(results[-1], screen)
    if not arguments.json and len(results) > 1:
        screen.line(f"{len(results)} logs", "title")
        screen.labelled("", _counted(results), "system")
    if arguments.page:
        _write_page(arguments, results)
    return code


def _write_page(arguments: Namespace, results: list[WhatIf]) -> None:
    from agent.cli.view import write_page  # with a web server, for this option alone

    policy = [f"policy {arguments.policy}"] if arguments.policy else []
    more = [f"with {name}" for name in arguments.protocol]
    changes = ", ".join([*policy, *more, *(f"without {name}" for name in arguments.without)])
    write_page(Path(arguments.page), what_if_page(results, changes))
    say(f"the page: {arguments.page}")


def _show_changes(result: WhatIf, screen: Screen) -> None:
    screen.line(visible(str(result.path)), "title")
    for call in result.changed:
        screen.line(f"  {visible(call.call.id)}  {visible(action_of(call.call))}", "action")
        screen.labelled("    then", told_decision(call.then), "output")
        tone: Tone = "refused" if call.now and call.now.kind == "rejected" else "good"
        screen.labelled("    now", told_decision(call.now), tone)
    if result.divergence is not None:
        valid = f"the recording is valid up to line {result.divergence.line - 1}: {result.divergence.why}"
        screen.labelled("", valid, "question")
    screen.labelled("", _counted([result]), "system")


def told_decision(decision: Decision | None) -> str:
    """Return the decision about a call, and the reason."""
    if decision is None:
        return "not decided"
    return decision.why if decision.why.startswith(decision.kind) else str(decision)


def _counted(results: list[WhatIf]) -> str:
    calls, judged = sum(len(result.calls) for result in results), sum(result.judged for result in results)
    changed = sum(len(result.changed) for result in results)
    share = f" ({100 * judged / calls:.0f} %)" if calls else ""
    return f"{judged} of {calls} calls could be judged{share}; {changed} of them would be decided otherwise"


def _changes_as_data(result: WhatIf) -> dict[str, Any]:
    def changed(call: Any) -> dict[str, Any]:
        of_call = {"call": call.call.id, "tool": call.call.tool, "arguments": plain(call.call.arguments)}
        return {**of_call, "then": plain(call.then), "now": plain(call.now)}

    return {
        "log": str(result.path),
        "calls": len(result.calls),
        "judged": result.judged,
        "changed": [changed(call) for call in result.changed],
        "divergence": plain(result.divergence),
    }


# Logs of an earlier format.


def _convert(arguments: Namespace, screen: Screen) -> int:
    """Convert logs and show the new ones; the exit code is 2 when a log could not be converted."""
    code = OK
    for path in find_logs(arguments.log):
        try:
            converted = convert(path)
        except LogError as error:
            say(str(error))
            code = USAGE
            continue
        if converted is None:
            say(f"{path} has the format of this program, or was converted before")
        else:
            screen.line(str(converted))
    return code
