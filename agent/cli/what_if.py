"""`bpagent what-if`: recorded runs judged again, under another policy, with other protocols, or without a b-thread."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from agent.cli.build import load_protocols
from agent.cli.errors import OK, USAGE, Mistake, say
from agent.cli.runs import find_log, find_logs
from agent.cli.screen import Screen, screen_on, visible
from agent.cli.view import write_page
from agent.history.rebuilding import changed_bthreads
from agent.history.what_if import Decision, Rejudged, WhatIf, what_if
from agent.log.reading import LogError, read_log
from agent.page.tables import what_if_page
from agent.page.wording import action_of
from agent.presets.configuration import load_policy
from agent.vocabulary.encoding import dump, plain


def execute(arguments: Namespace) -> int:
    """Judge each log again, print the changes, and return the exit code: 2 when a log could not be judged.

    Raises Mistake for wrong input.
    """
    paths = find_logs(arguments.log)
    if missing := [path for path in paths if not path.exists()]:
        raise Mistake(f"cannot read the log {missing[0]}: No such file or directory")
    if not (arguments.policy or arguments.protocol or arguments.without):
        raise Mistake("nothing would differ; name a --policy, a --protocol, or a b-thread to leave out: --without NAME")
    policy = load_policy(arguments.policy) if arguments.policy is not None else None
    threads = load_protocols(arguments.protocol)
    screen = screen_on(sys.stdout, needed=True)
    results, code = [], OK
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
            print(dump(_as_data(results[-1])))
        else:
            _show(results[-1], screen)
    if not arguments.json and len(results) > 1:
        _sum_up(results, screen)
    if arguments.page:
        write_page(Path(arguments.page), what_if_page(results, _changes(arguments)))
        say(f"the page: {arguments.page}")
    return code


def _changes(arguments: Namespace) -> str:
    policy = [f"policy {arguments.policy}"] if arguments.policy else []
    more = [f"with {name}" for name in arguments.protocol]
    return ", ".join([*policy, *more, *(f"without {name}" for name in arguments.without)])


def _show(result: WhatIf, screen: Screen) -> None:
    screen.line(visible(str(result.path)), "title")
    for call in result.changed:
        _show_change(call, screen)
    if result.divergence is not None:
        valid = f"the recording is valid up to line {result.divergence.line - 1}: {result.divergence.why}"
        screen.labelled("", valid, "question")
    screen.labelled("", _counted(result.judged, len(result.calls), len(result.changed)), "system")


def _show_change(call: Rejudged, screen: Screen) -> None:
    screen.line(f"  {visible(call.call.id)}  {visible(action_of(call.call))}", "action")
    screen.labelled("    then", told_decision(call.then), "output")
    screen.labelled(
        "    now", told_decision(call.now), "refused" if call.now and call.now.kind == "rejected" else "good"
    )


def told_decision(decision: Decision | None) -> str:
    """Return the decision about a call, and the reason."""
    if decision is None:
        return "not decided"
    return decision.why if decision.why.startswith(decision.kind) else str(decision)


def _sum_up(results: list[WhatIf], screen: Screen) -> None:
    calls, judged = sum(len(result.calls) for result in results), sum(result.judged for result in results)
    changed = sum(len(result.changed) for result in results)
    screen.line(f"{len(results)} logs", "title")
    screen.labelled("", _counted(judged, calls, changed), "system")


def _counted(judged: int, calls: int, changed: int) -> str:
    share = f" ({100 * judged / calls:.0f} %)" if calls else ""
    return f"{judged} of {calls} calls could be judged{share}; {changed} of them would be decided otherwise"


def _as_data(result: WhatIf) -> dict[str, Any]:
    return {
        "log": str(result.path),
        "calls": len(result.calls),
        "judged": result.judged,
        "changed": [
            {
                "call": call.call.id,
                "tool": call.call.tool,
                "arguments": plain(call.call.arguments),
                "then": plain(call.then),
                "now": plain(call.now),
            }
            for call in result.changed
        ],
        "divergence": plain(result.divergence),
    }
