"""`bpagent verify`: model-checks the loop as configured, with protocols of your own, or with every subset of its rules.

With --deployment, what spans episodes instead: each rule alone, and all of them together; or your own.

Every state that the loop can reach is looked at, whatever models, people and tools do. Exit code 0: everything holds.
1: something does not, or not every state was looked at. 2: the command, or a protocol, cannot be understood. 7: nothing
is wrong, and some rule or invariant was never reached, in none of what was verified: it may be wrong all the same.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agent.cli import exit_codes
from agent.cli.build import load_protocols
from agent.cli.config import chosen_preset
from agent.cli.mistakes import Mistake
from agent.cli.view import write_page
from agent.page.counterexample import verification_page
from agent.verification.counterexample import short, tell
from agent.verification.environment import examples_for
from agent.verification.invariants import not_claimed
from agent.verification.loop import Combination, every_subset, loop_rules, verify_loop
from bp import BThread, Verification, VerificationError


def execute(arguments: Namespace) -> int:
    """Verify, tell the verdicts, and return the exit code. Raises Mistake and OptionError."""
    if arguments.max_states is not None and arguments.max_states < 1:
        raise Mistake(f"--max-states {arguments.max_states} looks at nothing; give a number of states, such as 100000")
    if arguments.deployment and (arguments.all_subsets or arguments.preset or arguments.option or arguments.config):
        raise Mistake("--deployment verifies rules over episodes, which no preset has; leave the other options out")
    if arguments.deployment and arguments.page:
        raise Mistake("--page shows the loop; leave --deployment out")
    if arguments.deployment and (unknown := next(filter(str.isidentifier, arguments.protocol), "")):
        raise Mistake(f"--protocol {unknown!r}: --deployment has its own rules; one of yours is FILE.py:NAME")
    protocols = load_protocols(arguments.protocol)
    try:
        if arguments.deployment:
            return _verify_deployments(protocols, arguments)
        rules = loop_rules(chosen_preset(arguments))
        return _verify_all(rules, protocols, arguments)
    except VerificationError as error:
        raise Mistake(f"this cannot be verified: {error}") from error


def _verify_all(rules: tuple[BThread, ...], protocols: tuple[BThread, ...], arguments: Namespace) -> int:
    results: list[tuple[str, Verification]] = []
    for combination in _combinations(rules, arguments.all_subsets):
        present = [rule for rule in rules if rule.name in combination.rules]
        progress = _reporter(combination.label)
        examples = examples_for((*present, *protocols)) if protocols else None
        result = verify_loop(present, protocols, examples=examples, max_states=arguments.max_states, progress=progress)
        _tell(combination, result, as_json=arguments.json, unclaimed=not_claimed(present, rules))
        results.append((combination.label, result))
    if arguments.page:
        title = f"Verified: {', '.join(protocol.name for protocol in protocols) or 'the loop as configured'}"
        write_page(Path(arguments.page), verification_page(results, title))
        print(f"the page: {arguments.page}", file=sys.stderr)
    return _exit_code([result for _, result in results])


def _verify_deployments(own: tuple[BThread, ...], arguments: Namespace) -> int:
    from agent.cli.experiment import verified_deployments  # the laboratory is loaded where it is asked for

    results = []
    for label, names, verify in verified_deployments(own):
        result = verify(max_states=arguments.max_states, progress=_reporter(label))
        _tell(Combination(label, names), result, as_json=arguments.json)
        results.append(result)
    return _exit_code(results)


def _exit_code(results: Sequence[Verification]) -> int:
    """Return the exit code; a b-thread that is reached in one of the verifications was verified."""
    if not all(result.holds for result in results):
        return exit_codes.FAILED
    missed = {name for result in results for name in (*result.coverage.silent, *result.coverage.unreached)}
    reached = {name for result in results for name in result.coverage.reached}
    return exit_codes.UNREACHED if missed - reached else exit_codes.OK


def _combinations(rules: Sequence[BThread], all_subsets: bool) -> Iterator[Combination]:
    names = tuple(rule.name for rule in rules)
    if all_subsets:
        yield from every_subset(names)
    else:
        yield Combination("as configured", names)


def _tell(combination: Combination, result: Verification, *, as_json: bool, unclaimed: Sequence[str] = ()) -> None:
    if as_json:
        print(json.dumps({**_as_data(combination, result), "not_claimed": list(unclaimed)}), flush=True)
        return
    counted = f"{result.states:,} states, {result.transitions:,} transitions, {result.seconds:.1f} s"
    print(f"{result.verdict:8}  {counted}: {combination.label}", flush=True)
    if result.verdict == "bounded":
        print(
            "          not verified: interrupted, or more than --max-states; only these states were looked at",
            flush=True,
        )
    if missed := (*result.coverage.silent, *result.coverage.unreached):
        print(f"          never reached: {', '.join(missed)}", flush=True)
    if unclaimed:
        print(f"          not claimed: {', '.join(unclaimed)}", flush=True)
    for violation in result.violations:
        print(f"\n{tell(violation)}\n", flush=True)


def _as_data(combination: Combination, result: Verification) -> dict[str, Any]:
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
        "combination": combination.label,
        "rules": list(combination.rules),
        "verdict": result.verdict,
        "states": result.states,
        "transitions": result.transitions,
        "seconds": round(result.seconds, 3),
        "violations": violations,
        "unreached": [*result.coverage.silent, *result.coverage.unreached],
    }


def _reporter(label: str) -> Callable[[int, int], None]:
    def report(states: int, waiting: int) -> None:
        print(f"{label}: {states:,} states, {waiting:,} to look at", file=sys.stderr, flush=True)

    return report
