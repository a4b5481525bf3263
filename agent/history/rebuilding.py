"""The header of a log names the program that made it, and the program is rebuilt from that.

First come the preset's b-threads, then the additional ones. A log is data and must not run code: only b-threads of this
package are imported by the names in a log; all others have to be given. Arguments are values that can be read from
text, or functions of protocols.
"""

import ast
import inspect
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib import import_module
from itertools import zip_longest
from types import FunctionType
from typing import Any

from attrs import evolve

from agent.log.reading import LogError, RecordedRun
from agent.models.model import Model
from agent.presets.preset import Preset
from agent.threads.core import CORE
from agent.threads.judging import Judge
from agent.tools.definition import Toolbox
from agent.vocabulary.encoding import FORMAT, plain
from agent.vocabulary.errors import meant
from bp import BProgram, BThread, BThreadBody, bthread, start, sync
from bp.events import ALL
from bp.program import Record
from bp.statements import BThreadFunction
from constitution import Policy

PACKAGES = ("bpagent", "anyio", "attrs")


def make_header(
    preset: Preset,
    bthreads: Sequence[BThread],
    model: Model,
    toolbox: Toolbox,
    system_prompt: str,
    *,
    approvals: str,
    secrets: Sequence[str],
    about: Mapping[str, str],
) -> dict[str, Any]:
    """Return the header of the log of an agent, whose first b-threads are its preset's."""
    configuration, own = _told_of(preset)
    return {
        "format": FORMAT,
        "preset": preset.name,
        "configuration": configuration,
        "seed": None,  # nothing is drawn: events are selected by priority and age
        "approvals": approvals,
        "secrets": secrets,
        "bthreads": [*own, *map(named, bthreads[len(own) :])],
        "model": model.name,
        "api": getattr(model, "api", None),  # the wire format for a resumed run; only servers have one
        "about": about,
        "tools": list(toolbox.names),
        "workspace": toolbox.workspace.root,
        "sandbox": toolbox.sandbox,
        "system_prompt": system_prompt,
        "versions": {"python": platform.python_version(), **{package: _version_of(package) for package in PACKAGES}},
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@bthread
def joins(after: int, joining: BThread) -> BThreadBody:
    """Start a b-thread when this number of events have happened: it joins a run that had begun without it."""
    for _ in range(after):
        yield sync(wait_for=ALL)
    yield start(joining)


def joining(thread: BThread) -> BThread:
    """Return the b-thread that joins later, or the b-thread itself."""
    return thread.args[1] if thread.function is joins.function else thread


def named(bthread: BThread) -> dict[str, Any]:
    """Return the header's entry of a b-thread: its function, and its arguments as text, by name if given so.

    after: the number of events after which it joins, if it does so later.
    """
    if (inner := joining(bthread)) is not bthread:
        return {**named(inner), "after": bthread.args[0]}
    function = bthread.function
    return {
        "name": bthread.name,
        "function": f"{function.__module__}:{function.__qualname__}",
        "arguments": [
            *map(_as_text, bthread.args),
            *(f"{name}={_as_text(argument)}" for name, argument in bthread.kwargs.items()),
        ],
    }


@lru_cache(maxsize=64)
def _told_of(preset: Preset) -> tuple[Any, tuple[dict[str, Any], ...]]:
    """Return the options as plain data, and the b-threads; the agents of an experiment share their presets."""
    return plain(preset.configuration()), tuple(map(named, preset.bthreads()))


def _as_text(argument: object) -> str:
    """Return an argument as text; a function by its module and name instead of its address."""
    if isinstance(argument, FunctionType):
        return f"{argument.__module__}:{argument.__qualname__}"
    return str(argument)


@cache
def _version_of(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # 10 ms, and needed only where there is a log

    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Illegible(Exception):
    """An argument that cannot be read."""


def shipped(entry: Mapping[str, Any]) -> BThread | None:
    """Return the b-thread of this package that a log names, or None."""
    function = _found(str(entry.get("function")))
    made = _called(function.__wrapped__, function, entry) if isinstance(function, BThreadFunction) else None
    return made if made is not None and named(made) == entry else None


def _called(function: Callable[..., Any], make: Callable[..., BThread], entry: Mapping[str, Any]) -> BThread | None:
    """Return what `make` makes of the arguments of an entry, read for the parameters of `function`; None if not."""
    texts = entry.get("arguments") or []
    if not isinstance(texts, list):
        return None
    parameters = inspect.signature(function).parameters
    positional, by_name = list(parameters.values()), dict[str, Any]()
    values: list[Any] = []
    try:
        for number, text in enumerate(map(str, texts)):
            name, equals, value = text.partition("=")
            if equals and name in parameters:
                by_name[name] = _read(value, parameters[name])
            elif by_name or number >= len(positional):
                return None
            else:
                values.append(_read(text, positional[number]))
        return make(*values, **by_name).named(str(entry.get("name")))
    except (Illegible, TypeError, ValueError, SyntaxError):
        return None


def _read(text: str, parameter: inspect.Parameter) -> Any:
    """Return the value of a text, for a parameter of the annotated type, or that of its default."""
    kind: Any = type(parameter.default) if parameter.annotation is parameter.empty else parameter.annotation
    if kind is str:
        return text
    if kind in (int, float):
        return int(text) if text.isdecimal() else kind(text)
    if getattr(kind, "__origin__", kind) in (tuple, bool):
        return ast.literal_eval(text)
    predicate = _found(text)
    if not _is_predicate(predicate) or isinstance(kind, type):
        raise Illegible(text)
    return predicate


def _is_predicate(found: object) -> bool:
    """Return whether this is a function of one argument that returns a bool: it classifies a call, and does nothing."""
    if not isinstance(found, FunctionType):
        return False
    signature = inspect.signature(found)
    return signature.return_annotation is bool and len(signature.parameters) == 1


def _found(text: str) -> Callable[..., Any] | None:
    """Return what `module:name` names in this package, or None."""
    module, _, name = text.partition(":")
    if module.partition(".")[0] != "agent":
        return None
    try:
        return getattr(import_module(module), name, None)
    except ImportError:
        return None


class RebuildError(LogError):
    """The program of a log cannot be built again: the message says which b-thread is missing or differs."""


def rebuild(
    run: RecordedRun, threads: Sequence[BThread] = (), listeners: Iterable[Callable[[Record], None]] = ()
) -> BProgram:
    """Return the program that made a log, not begun; `listeners` get its steps. `threads` are the additional b-threads
    of the run that do not ship, in any order. Raises RebuildError when the header cannot be read, or when a b-thread is
    missing, differs, or was not in the run.
    """
    preset, beside = recorded_bthreads(run, threads)
    return BProgram(*preset.bthreads(), *beside, listeners=listeners)


def recorded_bthreads(run: RecordedRun, threads: Sequence[BThread] = ()) -> tuple[Preset, tuple[BThread, ...]]:
    """Return the preset of a log, and the additional b-threads of its run. Raises RebuildError like `rebuild`."""
    preset, entries = _recorded_entries(run)
    beside = tuple(_recorded_bthread(run, entry, threads) for entry in entries)
    functions = {joining(bthread).function for bthread in beside}
    for thread in threads:
        if thread.function not in functions:
            raise RebuildError(f"{run.path} was made without the b-thread {thread.name!r}; leave it out to replay")
    return preset, beside


def recorded_preset(run: RecordedRun) -> Preset:
    """Return the preset of a log, with its options. Raises RebuildError when the header lacks them."""
    configuration = run.header.get("configuration")
    if not isinstance(configuration, Mapping):
        raise RebuildError(f"{run.path}, line 1: the header has no configuration; the log was changed or damaged")
    try:
        return Preset(**configuration)
    except (TypeError, ValueError) as error:
        reason = str(error.args[0]).splitlines()[0] if error.args else type(error).__name__
        raise RebuildError(
            f"{run.path}, line 1: its configuration does not fit this program ({reason}); replay it with the "
            f"version that made it: {_version(run)}"
        ) from error


def _recorded_entries(run: RecordedRun) -> tuple[Preset, list[Mapping[str, Any]]]:
    """Return the preset, and the entries of the other b-threads. Raises RebuildError if the preset's differ."""
    recorded = run.header.get("bthreads")
    if not isinstance(recorded, list) or not all(isinstance(entry, Mapping) for entry in recorded):
        raise RebuildError(f"{run.path}, line 1: the header has no list of b-threads; the log was changed or damaged")
    preset = recorded_preset(run)
    built = [named(bthread) for bthread in preset.bthreads()]
    for number, (then, now) in enumerate(zip_longest(recorded[: len(built)], built), start=1):
        if then != now:
            raise RebuildError(
                f"{run.path} is of another program: its b-thread {number} was {_shown(then)}, here it is "
                f"{_shown(now)}; replay it with the version that made it: {_version(run)}"
            )
    return preset, recorded[len(built) :]


def _recorded_bthread(run: RecordedRun, entry: Mapping[str, Any], threads: Sequence[BThread]) -> BThread:
    """Return the b-thread that `entry` names: one of `threads`, or one of these with the recorded arguments, or one
    that ships. Raises RebuildError for others.
    """
    if type(entry.get("after")) is int:
        inner = {name: value for name, value in entry.items() if name != "after"}
        return joins(entry["after"], _recorded_bthread(run, inner, threads))
    alike = [bthread for bthread in threads if _placeless(named(bthread))["function"] == _placeless(entry)["function"]]
    again = (_called(each.function, partial(_with_arguments, each), entry) for each in alike)
    given = (each for each in (*alike, *filter(None, again)) if _placeless(named(each)) == _placeless(entry))
    found = next(given, None) or shipped(entry)
    if found is None:
        function = str(entry.get("function"))
        shown = ", ".join(_shown(named(bthread)) for bthread in alike)
        other = f" (given {shown}, the log has {_shown(entry)})" if shown else ""
        raise RebuildError(
            f"{run.path} was made with the b-thread {entry.get('name')!r} from {function}, which only its author "
            f"can vouch for{other}; give it again, in Python in threads=[...]: --protocol {_place(run, function)}"
        )
    return found


def _with_arguments(bthread: BThread, *args: Any, **kwargs: Any) -> BThread:
    return evolve(bthread, args=args, kwargs=kwargs)


def _placeless(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a b-thread of the header with files as `FILE.py:NAME` and an import share them."""
    module, _, name = str(entry.get("function")).partition(":")
    function = f"{module.removesuffix('.py').rpartition('.')[2]}:{name}"
    arguments = entry.get("arguments")
    told = [str(text).replace(".py:", ":") for text in arguments] if isinstance(arguments, list) else arguments
    return {**entry, "function": function, "arguments": told}


def _place(run: RecordedRun, function: str) -> str:
    """Return the file or module of a b-thread when the run began, if the log has it, for `--protocol`."""
    about = run.header.get("about")
    places = str(about.get("protocols") or "").splitlines() if isinstance(about, Mapping) else []
    file = f"/{function.partition(':')[0]}:"
    return next((place for place in places if file in place), function)


def _shown(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "not there"
    return f"{entry.get('name')}({', '.join(map(str, entry.get('arguments') or ()))})"


def _version(run: RecordedRun) -> str:
    versions = run.header.get("versions")
    version = versions.get("bpagent") if isinstance(versions, Mapping) else None
    return f"bpagent {version}" if version else "bpagent, version not recorded"


def changed_bthreads(
    run: RecordedRun,
    *,
    policy: Policy | None = None,
    threads: Sequence[BThread] = (),
    without: Collection[str] = (),
) -> tuple[BThread, ...]:
    """Return the b-threads of a log with changes.

    policy: judges instead of the recorded one, within the paths of the run's preset. threads: b-threads of the run that
    do not ship, and new ones. without: the names of b-threads to leave out. Raises RebuildError when the program of the
    log differs from the one here, or has no such b-thread.
    """
    preset, entries = _recorded_entries(run)
    beside = [_recorded_bthread(run, entry, threads) for entry in entries if str(entry.get("name")) not in without]
    known = [joining(bthread) for bthread in beside]
    more = [bthread for bthread in threads if bthread not in known and bthread.name not in without]
    rules = preset.rules()
    if policy is not None:
        judging = preset if preset.policy is not None else evolve(preset, policy="default")
        rules = judging.rules(judge=Judge(within(preset, policy)))
    everything = (*CORE, *rules, *beside, *more)
    names = {bthread.name for bthread in everything} | {str(entry.get("name")) for entry in entries}
    for name in without:
        if name not in names:
            raise RebuildError(f"{run.path} has no b-thread {name!r}; {meant(name, sorted(names))}")
    return tuple(bthread for bthread in everything if bthread.name not in without)


def within(preset: Preset, policy: Policy) -> Policy:
    """Return a policy with the paths of a preset."""
    return evolve(policy, allowed_roots=preset.allowed_paths, denied_paths=preset.denied_paths)
