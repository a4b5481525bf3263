"""`bpagent verify`: model-checks the loop as configured, with protocols of your own, or with every subset of its rules.

Every state that the loop can reach is looked at, whatever models, people and tools do. Exit code 0: everything holds.
1: something does not, or not every state was looked at. 2: the command cannot be understood, or not be verified.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from agent.presets import OptionError, preset_named
from agent.verification import Combination, every_subset, loop_rules, short, tell, verify_loop
from bp import BThread, Verification, VerificationError

__all__ = ["add_arguments", "execute"]

HOLDS, VIOLATED, USAGE = 0, 1, 2


class Mistake(Exception):
    """The command line asks for what there is not; the message says what would do."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `verify`."""
    parser.add_argument("--preset", default="default", metavar="NAME", help="which rules (default: default)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="change one row of the preset"
    )
    parser.add_argument(
        "--protocol", action="append", default=[], metavar="FILE.py:NAME", help="add a b-thread; more than once"
    )
    parser.add_argument("--all-subsets", action="store_true", help="leave out rules of the preset in every way")
    parser.add_argument("--max-states", type=_positive, metavar="N", help="give up a combination at N states")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each combination")


def execute(arguments: Namespace) -> int:
    """Verify, tell the verdicts, and return the exit code."""
    try:
        rules = _rules(arguments.preset, arguments.option)
        protocols = tuple(bthread for name in arguments.protocol for bthread in _loaded(name))
        return _verify_all(rules, protocols, arguments)
    except (Mistake, OptionError, VerificationError) as error:
        print(f"bpagent verify: {error}", file=sys.stderr)
        return USAGE


def _verify_all(rules: tuple[BThread, ...], protocols: tuple[BThread, ...], arguments: Namespace) -> int:
    code = HOLDS
    for combination in _combinations(rules, arguments.all_subsets):
        present = [rule for rule in rules if rule.name in combination.rules]
        progress = _reporter(combination.label)
        result = verify_loop((*present, *protocols), max_states=arguments.max_states, progress=progress)
        _tell(combination, result, as_json=arguments.json)
        code = code if result.holds else VIOLATED
    return code


def _combinations(rules: Sequence[BThread], all_subsets: bool) -> Iterator[Combination]:
    names = tuple(rule.name for rule in rules)
    if all_subsets:
        yield from every_subset(names)
    else:
        yield Combination("as configured", names)


def _tell(combination: Combination, result: Verification, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_as_data(combination, result)), flush=True)
        return
    counted = f"{result.states:,} states, {result.transitions:,} transitions, {result.seconds:.1f} s"
    print(f"{_verdict(result):8}  {counted}: {combination.label}", flush=True)
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
        "verdict": _verdict(result),
        "states": result.states,
        "transitions": result.transitions,
        "seconds": round(result.seconds, 3),
        "violations": violations,
    }


def _verdict(result: Verification) -> str:
    return "violated" if result.violations else "bounded" if result.bounded else "holds"


def _reporter(label: str) -> Callable[[int, int], None]:
    def report(states: int, waiting: int) -> None:
        print(f"{label}: {states:,} states, {waiting:,} to look at", file=sys.stderr, flush=True)

    return report


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


# What the command line names.


def _rules(preset: str, options: Sequence[str]) -> tuple[BThread, ...]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise Mistake(f"--option {option!r} has no value; write NAME=VALUE, such as sequential=false")
        parsed[key.strip()] = value
    return loop_rules(preset_named(preset).with_options(parsed))


def _loaded(name: str) -> tuple[BThread, ...]:
    """Return the b-threads that `FILE.py:NAME` names: a b-thread, a function of one without arguments, or a list."""
    file, _, attribute = name.rpartition(":")
    if not file or not attribute:
        raise Mistake(f"--protocol {name!r} names no b-thread; write FILE.py:NAME")
    module = _imported(Path(file))
    if not hasattr(module, attribute):
        raise Mistake(f"--protocol {name!r}: {file} has no {attribute!r}")
    value = getattr(module, attribute)
    try:
        value = value() if callable(value) else value
    except TypeError as error:
        raise Mistake(f"--protocol {name!r} needs arguments ({error}); name a value that has them") from error
    bthreads = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(bthread, BThread) for bthread in bthreads):
        raise Mistake(f"--protocol {name!r} is {type(value).__name__}; decorate a generator function with @bthread")
    return bthreads


def _imported(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise Mistake(f"--protocol: there is no Python file {str(path)!r}")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a foreign file may raise
        raise Mistake(f"--protocol: {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
