"""Policies in YAML, one b-thread each; every mistake is told with file, line and column.

policies:
  - require: read_customer              # only after authenticate has ended well; a list: all of it, in this order
    after: authenticate
  - forbid: {effect: upload network}    # once read_customer has begun; without `after`: at any time
    after: read_customer
    within: conversation                # else: run; {between: [A, B]}; {from: A}; {from: A, until: B}
  - allow: {tool: refund, arguments: {amount: {above: 100}}}
    at_most: 1
  - expect: [run_tests, commit]         # before the run may end
    after: edit_file
    name: work is tested                # what refusals call it
    otherwise: stop                     # the run ends there; ask: a person decides; without it: refuse
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.protocols.policies import (
    CONVERSATION,
    OTHERWISE,
    RUN,
    Match,
    Scope,
    between,
    eventually,
    make_match,
    never,
    no_more_than,
    only_after,
    since,
)
from agent.vocabulary.errors import AgentError
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml
from bp import BThread

KINDS = ("require", "forbid", "allow", "expect")
KEYS = (*KINDS, "after", "at_most", "within", "name", "otherwise")


class PolicyError(AgentError):
    """A file of policies that is not what it should be; the message begins with file, line and column."""


def read_policies(path: str | os.PathLike[str]) -> tuple[BThread, ...]:
    """Return the b-threads of the policies in a file. Raises PolicyError."""
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
    return _of_kind(said[0], node, **dict(_else(node)))


def _else(node: Node) -> Iterator[tuple[str, Any]]:
    if (name := node.get("name")) is not None:
        yield "name", name.text()
    if (otherwise := node.get("otherwise")) is not None:
        if otherwise.one_of(OTHERWISE) == "ask" and node.get("expect") is not None:
            raise otherwise.wrong("`expect` is about the end, about which nobody is asked; write refuse or stop")
        yield "otherwise", otherwise.value


def _of_kind(kind: str, node: Node, **more: Any) -> BThread:
    what, within = node.required(kind), _scope(node.get("within"))
    if (kind == "allow") != (node.get("at_most") is not None):
        raise node.wrong("`allow` says how often with `at_most`, and nothing else does")
    match kind:
        case "require":
            return only_after(_match(what), *_chain(node.required("after")), within=within, **more)
        case "forbid":
            after = node.get("after")
            return never(_match(what), after=() if after is None else _chain(after), within=within, **more)
        case "allow":
            if node.get("after") is not None:
                raise node.wrong("`allow` counts from the beginning of its scope; write within: {from: ...}")
            return no_more_than(node.required("at_most").count(), _match(what), within=within, **more)
        case _:
            return eventually(*_chain(what), after=_chain(node.required("after")), within=within, **more)


def _scope(node: Node | None) -> Scope:
    if node is None:
        return RUN
    if isinstance(node.value, str):
        return {"run": RUN, "conversation": CONVERSATION}[node.one_of(("run", "conversation"))]
    node.mapping("between", "from", "until")
    pair = node.get("between")
    if pair is None:
        until = node.get("until")
        return since(_match(node.required("from")), None if until is None else _match(until))
    both = _chain(pair)
    if len(both) != 2 or node.get("from") is not None or node.get("until") is not None:
        raise node.wrong("a scope is between two actions, or from one until another")
    return between(*both)


def _chain(node: Node) -> tuple[Match, ...]:
    chain = tuple(map(_match, node.items())) if isinstance(node.value, list) else (_match(node),)
    if not chain:
        raise node.wrong("name at least one action")
    return chain


def _match(node: Node) -> Match:
    if isinstance(node.value, str):
        return Match((node.text(),))
    node.mapping("tool", "arguments", "effect", "zone")
    arguments = node.get("arguments")
    try:
        return make_match(
            _tools(node.get("tool")),
            {} if arguments is None else json.loads(arguments.json()),
            _word(node.get("effect")),
            _word(node.get("zone")),
        )
    except ValueError as error:
        raise error if isinstance(error, NodeError) else node.wrong(str(error)) from error


def _tools(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    return tuple(item.text() for item in node.items()) if isinstance(node.value, list) else (node.text(),)


def _word(node: Node | None) -> str:
    return "" if node is None else node.text()
