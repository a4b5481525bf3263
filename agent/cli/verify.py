"""`bpagent verify`: model-checks the loop as configured, with protocols of your own.

It searches every state that models, users and tools can lead to. Exit code 0: everything holds. 1: a violation, or an
incomplete search, or real runs made too few of its moves. 2: an invalid command or protocol. 7: no violation, but some
rule or invariant was never reached, and may be wrong.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.cli.build import load_protocols
from agent.cli.config import chosen_preset
from agent.cli.errors import FAILED, OK, UNREACHED, Mistake, leave_the_line_of_the_key
from agent.cli.screen import Screen, screen_on
from agent.cli.view import write_page
from agent.page.counterexample import unfinished, verification_page
from agent.verification import loop_rules, sampled_events, verify_loop
from agent.verification.counterexample import short, tell
from agent.verification.environment import examples_for
from bp import BThread, Verification, VerificationError


def execute(arguments: Namespace) -> int:
    """Verify, show the verdict, and return the exit code. Raises Mistake and OptionError."""
    protocols = load_protocols(arguments.protocol)
    rules = () if arguments.alone else loop_rules(chosen_preset(arguments))
    examples = examples_for((*rules, *protocols)) if rules and protocols else None
    try:
        result = verify_loop(rules, protocols, examples=examples, max_states=arguments.max_states, progress=_progress)
    except VerificationError as error:
        raise Mistake(f"this cannot be verified: {error}") from error
    if result.interrupted or sys.stderr.isatty():
        leave_the_line_of_the_key()
    if arguments.json:
        print(json.dumps(_as_data(rules, result)), flush=True)
    else:
        _tell(result, screen_on(sys.stdout, needed=True))
    if arguments.page:
        title = f"Verified: {', '.join(protocol.name for protocol in protocols) or 'the loop as configured'}"
        write_page(Path(arguments.page), verification_page(result, protocols, title, sampled_events(protocols)))
        print(f"the page: {arguments.page}", file=sys.stderr)
    if not result.holds:
        return FAILED
    return UNREACHED if _unreached(result) else OK


def _unreached(result: Verification) -> tuple[str, ...]:
    return (*result.coverage.silent, *result.coverage.unreached)


def _tell(result: Verification, screen: Screen) -> None:
    counted = f"{result.states:,} states, {result.transitions:,} transitions, {result.seconds:.1f} s"
    screen.line(f"{result.verdict:8}  {counted}: as configured")
    screen.line(f"          {result.agreed}")
    for told in unfinished(result):
        screen.line(f"          {told}")
    if missed := _unreached(result):
        screen.line(f"          never reached: {', '.join(missed)}")
        screen.line("          nothing came that concerns these; EXAMPLES beside a rule offer calls of your own tools")
    for violation in result.violations[:1]:
        for line in ("", *tell(violation).splitlines(), ""):
            screen.line(line)
    if others := len(result.violations) - 1 if result.violations else 0:
        screen.line(f"and {others} more; --json prints all of them")


def _as_data(rules: Sequence[BThread], result: Verification) -> dict[str, Any]:
    violations = [
        {
            "kind": violation.kind,
            "bthread": violation.bthread,
            "trace": list(map(short, violation.trace)),
            "cycle": list(map(short, violation.cycle)),
            "story": tell(violation),
        }
        for violation in result.violations
    ]
    return {
        "rules": [rule.name for rule in rules],
        "verdict": result.verdict,
        "states": result.states,
        "interrupted": result.interrupted,
        "agreed": str(result.agreed),
        "local_states": dict(result.local_states),
        "transitions": result.transitions,
        "seconds": round(result.seconds, 3),
        "violations": violations,
        "unreached": list(_unreached(result)),
    }


BAR = 30  # characters


def _progress(states: int, waiting: int, violations: int) -> None:
    """Show how many of the states known so far were looked at: a bar on a terminal, else a line."""
    found = f", {violations} violation{'s' * (violations > 1)} so far" if violations else ""
    said = f"{states:,} states, {waiting:,} to look at{found}"
    if sys.stderr.isatty():
        said = f"\r[{'#' * (BAR * (states - waiting) // states):{BAR}}] {said}\x1b[K"
    print(said, file=sys.stderr, end="" if sys.stderr.isatty() else "\n", flush=True)
