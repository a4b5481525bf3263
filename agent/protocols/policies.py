"""Temporal policies: rules over several calls, in one line of Python or YAML, each kept by one b-thread."""

import json
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import Factory, evolve, field, frozen

from agent.protocols.asking import COMPLETED, EVERYTHING, Reason
from agent.threads.judging import objection
from agent.vocabulary.calls import ToolCall, without
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import ActionDescribed, CallAnswered, GateApproved, GateRejected, RunEnded, ToolFinished
from agent.vocabulary.messages import ToolResult
from agent.vocabulary.reasons import Ending, Unfinished
from agent.vocabulary.yaml_nodes import Node, NodeError, fields, read_yaml
from bp import NONE, BThread, BThreadBody, bthread, contains, freeze, start, sync, where
from constitution import Level, Verdict, effects_of
from constitution.rules import kinds_named, places_named


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, bound: Any) -> bool:
        try:
            return not isinstance(value, bool) and compare(float(value), float(bound))
        except (TypeError, ValueError):
            return False

    return holds


CONDITIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": lambda value, wanted: bool(value == wanted),
    "is_not": lambda value, unwanted: bool(value != unwanted),
    "above": _ordered(operator.gt),
    "below": _ordered(operator.lt),
    "at_least": _ordered(operator.ge),
    "at_most": _ordered(operator.le),
    "contains": lambda value, part: part in value if isinstance(value, str | tuple) else False,
    "matches": lambda value, pattern: isinstance(value, str) and re.search(pattern, value) is not None,
    "one_of": lambda value, choices: value in choices,
}
"""Conditions on an argument; a missing argument is None."""


@frozen
class Condition:
    """A condition on an argument: a word of `CONDITIONS`, and the value it is compared with."""

    argument: str
    test: str
    value: Any = field(converter=freeze)

    def __call__(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether it holds."""
        return CONDITIONS[self.test](arguments.get(self.argument), self.value)

    def __str__(self) -> str:
        return f"{self.argument} {self.test.replace('_', ' ')} {self.value!r}"


@frozen
class Match:
    """A predicate: whether an approved action matches all non-empty fields."""

    tools: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    effects: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def __call__(self, approved: GateApproved) -> bool:
        """Return whether it does."""
        call = approved.call
        if self.tools and call.tool not in self.tools:
            return False
        if not all(condition(call.arguments) for condition in self.conditions):
            return False
        return not (self.effects or self.places) or any(
            (not self.effects or effect.kind in self.effects) and (not self.places or effect.place.name in self.places)
            for effect in effects_of(approved.facts)
        )

    def __str__(self) -> str:
        parts = [" or ".join(self.tools), *(f"with {condition}" for condition in self.conditions)]
        parts += [" or ".join(self.effects)]
        parts += [f"in {' or '.join(self.places)}" if self.places else ""]
        return " ".join(filter(None, parts)) or "any action"


Actions = str | Match


def action(*tools: str, effect: str = "", zone: str = "", **arguments: Any) -> Match:
    """Return the set of actions of these tools, with these effects, zones and arguments.

    An argument is a value, or one condition: `amount={"above": 100}`. Raises ValueError for an unknown condition,
    effect or zone.
    """
    return make_match(tools, arguments, effect, zone)


def make_match(tools: tuple[str, ...], arguments: Mapping[str, Any], effect: str = "", zone: str = "") -> Match:
    """Like `action`, for arguments of any name. Raises ValueError."""
    conditions = tuple(_condition(name, value) for name, value in arguments.items())
    return Match(tools, conditions, tuple(kinds_named(effect.split())), tuple(places_named(zone.split())))


def _condition(name: str, value: Any) -> Condition:
    if not isinstance(value, Mapping):
        return Condition(name, "is", value)
    if len(value) != 1 or not set(value) <= set(CONDITIONS):
        raise ValueError(f"{name}: {dict(value)!r} is no condition; give one of {', '.join(CONDITIONS)}, and a value")
    [(test, wanted)] = value.items()
    if test == "matches":
        try:
            re.compile(wanted)
        except (re.error, TypeError) as error:
            raise ValueError(f"{name}: {wanted!r} is no regular expression: {error}") from error
    return Condition(name, test, wanted)


def as_match(actions: Actions) -> Match:
    """Return a predicate of actions; a text is the name of a tool."""
    return Match((actions,)) if isinstance(actions, str) else actions


def as_chain(actions: "Actions | Sequence[Actions]") -> tuple[Match, ...]:
    """Return a chain of one or more actions. Raises ValueError for none."""
    chain = tuple(map(as_match, (actions,) if isinstance(actions, str | Match) else actions))
    if not chain:
        raise ValueError("name at least one action")
    return chain


@frozen
class Scope:
    """A scope: the whole conversation, each run, or from the start of one action to the success of another."""

    kind: Literal["conversation", "run", "between", "until"]
    opens: Match | None = None
    closes: Match | None = None

    def __str__(self) -> str:
        match self.kind:
            case "between":
                return f"between {self.opens} and {self.closes}"
            case "until":
                return f"from {self.opens}" + (f" until {self.closes}" if self.closes else " on")
            case kind:
                return f"in a {kind}"


RUN = Scope("run")
CONVERSATION = Scope("conversation")


def between(opens: Actions, closes: Actions) -> Scope:
    """Return the scope from one action to another; obligations must be met before the second one may run."""
    return Scope("between", as_match(opens), as_match(closes))


def since(opens: Actions, until: Actions | None = None) -> Scope:
    """Return the scope from an action on, until another one; obligations must be met by the end of the run, too."""
    return Scope("until", as_match(opens), None if until is None else as_match(until))


def advanced(chain: tuple[Match, ...], place: int, approved: GateApproved) -> int:
    """Return the position in a chain of actions after one more action."""
    return place + 1 if place < len(chain) and chain[place](approved) else place


@frozen
class Pattern:
    """After all of `opens` have begun in order, `forbidden` applies until all of `closes` have succeeded in order.

    Without `opens` it applies from the start, without `closes` permanently. forbidden: an action, or None for the end
    of the scope. told: the reason; default: the missing one of `closes`.
    """

    forbidden: Match | None
    opens: tuple[Match, ...] = ()
    closes: tuple[Match, ...] = ()
    told: str = ""
    begun: int = 0  # position in `opens`
    # Position in `closes`; -1: nothing is forbidden.
    done: int = field(default=Factory(lambda self: -1 if self.opens else 0, takes_self=True))

    def after_begin(self, approved: GateApproved) -> "Pattern":
        """Record an approval; the obligation begins again each time all of `opens` have begun."""
        if not self.opens or (self.done >= 0 and not self.closes):
            return self
        begun = advanced(self.opens, self.begun, approved)
        return evolve(self, begun=begun) if begun < len(self.opens) else evolve(self, begun=0, done=0)

    def after_end(self, approved: GateApproved) -> "Pattern":
        """Record an action that succeeded."""
        if self.done < 0 or not self.closes:
            return self
        done = advanced(self.closes, self.done, approved)
        return evolve(self, done=-1 if done == len(self.closes) else done)

    def objection(self) -> Reason | None:
        """Return the reason of the present prohibition; None if nothing is forbidden."""
        if self.done < 0:
            return None
        event = str(self.closes[self.done]) if self.closes else ""
        allowed = (
            f"{self.forbidden} is allowed only after" if self.forbidden else f"after {self.opens[-1]} there has to be"
        )
        return Reason(self.told or f"{allowed} {event}, which is missing", "policy")


Otherwise = Literal["refuse", "ask", "stop"]

NEWS = GateApproved | ToolFinished | CallAnswered | RunEnded


def only_after(
    what: Actions, *first: Actions, within: Scope = RUN, otherwise: Otherwise = "refuse", name: str = "only_after"
) -> BThread:
    """Precedence: `what` may run only after all of `first` have succeeded in order."""
    return _police(Pattern(as_match(what), closes=as_chain(first)), within, otherwise, name)


def never(
    what: Actions,
    *,
    after: "Actions | Sequence[Actions]" = (),
    within: Scope = RUN,
    otherwise: Otherwise = "refuse",
    name: str = "never",
) -> BThread:
    """Absence: once all of `after` have begun in order, `what` may not run."""
    unwanted, chain = as_match(what), as_chain(after) if after else ()
    told = f"{unwanted} is not allowed" + (f" after {chain[-1]}" if chain else "")
    return _police(Pattern(unwanted, chain, told=told), within, otherwise, name)


def no_more_than(
    most: int, what: Actions, *, within: Scope = RUN, otherwise: Otherwise = "refuse", name: str = "no_more_than"
) -> BThread:
    """Bounded existence: `what` may run at most `most` times."""
    bounded = as_match(what)
    told = f"{bounded} is allowed {most} times, and that was all"
    return _police(Pattern(bounded, (bounded,) * most, told=told), within, otherwise, name)


def eventually(
    *what: Actions,
    after: "Actions | Sequence[Actions]",
    within: Scope = RUN,
    otherwise: Literal["refuse", "stop"] = "refuse",
    name: str = "eventually",
) -> BThread:
    """Response: after `after`, the end of the run, or the action that closes the scope, waits for all of `what`.

    Raises ValueError for `otherwise="ask"`: users decide about calls, not about the end of a run.
    """
    if otherwise not in ("refuse", "stop"):
        raise ValueError("otherwise='ask' is about actions, and the end is none; write 'refuse' or 'stop'")
    return _police(Pattern(None, as_chain(after), as_chain(what)), within, otherwise, name)


def _police(pattern: Pattern, within: Scope, otherwise: Otherwise, name: str) -> BThread:
    if otherwise == "ask":
        return police_asking(pattern, within, name).named(name)
    return (police(pattern, within, stops=True) if otherwise == "stop" else police(pattern, within)).named(name)


@frozen
class Memory:
    """The state of a policy: of its pattern (None while its scope is closed), and the actions under way."""

    pattern: Pattern
    scope: Scope
    state: Pattern | None = field(
        default=Factory(lambda self: self.pattern if self.scope.opens is None else None, takes_self=True)
    )
    running: tuple[GateApproved, ...] = ()

    def after(self, said: object) -> "Memory":
        """Return the state after an event; the actions that open and close the scope are not in it."""
        state, opens, closes = self.state, self.scope.opens, self.scope.closes
        match said:
            case GateApproved():
                if state is not None:
                    state = state.after_begin(said)
                elif opens is not None and opens(said):
                    state = self.pattern
                return evolve(self, state=state, running=(*self.running, said))
            case ToolFinished(result=ToolResult(is_error=False)):
                for approved in self.running:
                    if approved.call == said.call and state is not None:
                        is_last = closes is not None and closes(approved)
                        return evolve(self, state=None if is_last else state.after_end(approved))
            case CallAnswered():
                return evolve(self, running=tuple(each for each in self.running if each.call.id != said.call))
            case RunEnded() if self.scope.kind != "conversation":
                return evolve(Memory(self.pattern, self.scope), running=self.running)
        return self

    def objections(self) -> tuple[Any, object]:
        """Return the refused events and why: the pattern's, and the end of the scope while an obligation is open."""
        missing = None if self.state is None else self.state.objection()
        if missing is None:
            return NONE, Reason("", "policy")
        if self.pattern.forbidden is not None:
            return where(GateApproved, self.pattern.forbidden), missing
        at_the_end = NONE if self.scope.kind == "between" else COMPLETED
        closing = NONE if self.scope.closes is None else where(GateApproved, self.scope.closes)
        return at_the_end | closing, Unfinished(str(missing))


@bthread
def police(pattern: Pattern, scope: Scope = RUN, stops: bool = False) -> BThreadBody:
    """Enforce a policy in its scope: refuse forbidden actions, and the end while an obligation is open.

    `stops`: a forbidden action ends the run.
    """
    memory, ending = Memory(pattern, scope), None
    news = NEWS | GateRejected if stops else NEWS
    while True:
        refused, because = memory.objections()
        if stops and isinstance(because, Unfinished):
            because = stopped(because)
        if ending is not None:
            refused, because = EVERYTHING | COMPLETED, ending
        said = yield sync(wait_for=news, refuse=refused, because=because)
        if isinstance(said, GateRejected):
            broken = any(refusal.because == because for refusal in said.refusals)
            ending = stopped(because) if broken and ending is None else ending
        else:
            memory, ending = memory.after(said), None if isinstance(said, RunEnded) else ending


def stopped(because: object) -> Ending:
    """Return the ending of a run that was stopped by a policy."""
    return because if isinstance(because, Ending) else Ending("stopped", "policy", f"Stopped by a policy: {because}.")


@bthread(name="police")
def police_asking(pattern: Pattern, scope: Scope, name: str) -> BThreadBody:
    """Enforce a policy by asking the user about each forbidden action.

    Forbidden actions are blocked from the start; a call about which the user is asked waits for the answer.
    """
    memory = Memory(pattern, scope)
    described: tuple[ActionDescribed, ...] = ()
    asked: tuple[ToolCall, ...] = ()
    while True:
        forbidden, because = memory.objections()
        for each in described:
            if each.call not in asked and contains(forbidden, GateApproved(each.call, each.facts)):
                asked = (*asked, each.call)
                verdict = Verdict(Level.ask, "policy", "policy", explanation=str(because))
                yield start(objection(each, verdict).named(name))
        held = reduce(lambda held, call: held & ~where(GateApproved, call=call), asked, forbidden)
        said = yield sync(wait_for=NEWS | ActionDescribed | GateRejected, block=held)
        if isinstance(said, ActionDescribed):
            described = (*(each for each in described if each.call != said.call), said)
            asked = without(asked, said.call)
            continue
        described = tuple(each for each in described if not is_over(each.call, said))
        asked = tuple(call for call in asked if not is_over(call, said))
        memory = memory.after(said)


def is_over(call: ToolCall, said: Any) -> bool:
    """Return whether an event approves or rejects a call."""
    match said:
        case GateApproved() | GateRejected():
            return bool(said.call == call)
        case CallAnswered():
            return bool(said.call == call.id)
    return isinstance(said, RunEnded)


KINDS = ("require", "forbid", "allow", "expect")
KEYS = (*KINDS, "after", "at_most", "within", "name", "otherwise")


class PolicyError(AgentError):
    """A file of policies is invalid; the message begins with file, line and column."""


def read_policies(path: str | os.PathLike[str]) -> tuple[BThread, ...]:
    """Return the b-threads of the policies in a YAML file. Raises PolicyError with file, line and column.

    policies:
      - require: read_customer              # only after authenticate has succeeded; a list: all, in this order
        after: authenticate
      - forbid: {effect: upload network}    # once read_customer has begun; without `after`: at any time
        after: read_customer
        within: conversation                # else: run; {between: [A, B]}; {from: A}; {from: A, until: B}
      - allow: {tool: refund, arguments: {amount: {above: 100}}}
        at_most: 1
      - expect: [run_tests, commit]         # before the run may end
        after: edit_file
        name: work is tested                # its name in refusals
        otherwise: stop                     # the run ends there; ask: a person decides; without it: refuse
    """
    try:
        policies = read_yaml(Path(path).expanduser()).mapping("policies").required("policies")
        found = tuple(_policy(node.mapping(*KEYS)) for node in policies.items())
        if not found:
            raise policies.wrong("there is no policy in this list; write one, or leave the file out")
        return found
    except NodeError as error:
        raise PolicyError(str(error)) from error


def _policy(node: Node) -> BThread:
    said = [kind for kind in KINDS if node.get(kind) is not None]
    if len(said) != 1:
        raise node.wrong(f"a policy says one of {', '.join(KINDS)}")
    [kind], more = said, fields(node, {"name": Node.text, "otherwise": _otherwise, "within": _scope}, others=KEYS)
    if kind == "expect" and more.get("otherwise") == "ask":
        told = "`expect` is about the end, and no person is asked about that; write refuse or stop"
        raise node.required("otherwise").wrong(told)
    if (kind == "allow") != (node.get("at_most") is not None):
        raise node.wrong("`allow` says how often with `at_most`, and nothing else does")
    what, after = node.required(kind), node.get("after")
    if kind == "require":
        return only_after(_match(what), *_chain(node.required("after")), **more)
    if kind == "forbid":
        return never(_match(what), after=() if after is None else _chain(after), **more)
    if kind == "expect":
        return eventually(*_chain(what), after=_chain(node.required("after")), **more)
    if after is not None:
        raise node.wrong("`allow` counts from the beginning of its scope; write within: {from: ...}")
    return no_more_than(node.required("at_most").count(), _match(what), **more)


def _otherwise(node: Node) -> Any:
    return node.one_of(get_args(Otherwise))


def _scope(node: Node) -> Scope:
    if isinstance(node.value, str):
        return {"run": RUN, "conversation": CONVERSATION}[node.one_of(("run", "conversation"))]
    given = fields(node, {"between": _chain, "from": _match, "until": _match})
    if "between" not in given:
        node.required("from")
        return since(given["from"], given.get("until"))
    if len(given) > 1 or len(given["between"]) != 2:
        raise node.wrong("a scope is between two actions, or from one until another")
    return between(*given["between"])


def _chain(node: Node) -> tuple[Match, ...]:
    chain = tuple(map(_match, node.items())) if isinstance(node.value, list) else (_match(node),)
    if not chain:
        raise node.wrong("name at least one action")
    return chain


def _match(node: Node) -> Match:
    if isinstance(node.value, str):
        return Match((node.text(),))
    node.mapping("tool", "arguments", "effect", "zone")
    tools = node.read("tool", lambda tool: tool.texts() if isinstance(tool.value, list) else (tool.text(),), ())
    arguments = json.loads(node.read("arguments", Node.json, "{}"))
    words = node.read("effect", Node.text, ""), node.read("zone", Node.text, "")
    try:
        return make_match(tools, arguments, *words)
    except ValueError as error:
        raise node.wrong(str(error)) from error
