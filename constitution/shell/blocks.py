"""Blocks of a script: sequences, pipelines, and-or lists, branches, loops and function definitions.

Each function walks one kind of node and returns what the block prints, as far as it is known.
"""

from typing import TYPE_CHECKING

from constitution.effects import Effect, Finding
from constitution.shell.endless import fills_without_end, starts_without_end
from constitution.shell.flow import ANYTHING, NOTHING, Flow, one_after_the_other
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

    from constitution.shell.walk import Walk

__all__ = [
    "and_or_list",
    "anything_else",
    "branches",
    "case",
    "case_item",
    "for_loop",
    "function",
    "loop",
    "pipeline",
    "sequence",
    "subshell",
]


def sequence(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk what stands one after the other."""
    return one_after_the_other([walk.visit(child, stdin) for child in node.named_children])


def subshell(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk a block in a copy of the scope."""
    return walk.isolated(lambda: sequence(walk, node, stdin))


def pipeline(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk the stages, each with the output of the one before as its input, each in a copy of the scope."""
    flow = stdin
    for stage in node.named_children:
        flow = walk.piped(stage, flow)
    return flow


def and_or_list(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """`a && b`, `a || b`, in long chains leftmost deepest: unrolled, each right side joined."""
    chain, first = [], node
    while first.type == "list" and first.named_child_count:
        chain.append(first.named_children[1:])
        first = first.named_children[0]
    flow = walk.visit(first, stdin)
    for rights in reversed(chain):
        for right in rights:
            flow = one_after_the_other([flow, walk.perhaps(right, stdin)])
    return flow


def branches(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """`if` and `elif`: the condition runs, each branch may or may not run."""
    conditions = {_span(child) for child in node.children_by_field_name("condition")}
    for child in node.named_children:
        if _span(child) in conditions:
            walk.visit(child, stdin)
        else:
            walk.perhaps(child, stdin)
    return ANYTHING


def loop(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """`while` and `until`: twice when the first round leaves something else behind than it found."""
    _without_end(walk, node)
    before = walk.scope.copy()
    branches(walk, node, stdin)
    if walk.scope.variables != before.variables or walk.scope.cwd != before.cwd:
        branches(walk, node, stdin)
    return ANYTHING


def _without_end(walk: "Walk", node: "Node") -> None:
    if starts_without_end(node, walk.source):
        says = "start more and more programs without end"
        walk.examiner.report(Finding(Effect.FORK_BOMB, "", says, "the loop", walk.evidence_of(node, ())))
    elif fills_without_end(node, walk.source):
        says = "fill the disk without end"
        walk.examiner.report(Finding(Effect.FILL, "", says, "the loop", walk.evidence_of(node, ())))


def case_item(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk one branch of a `case`; its patterns are no commands."""
    values = {_span(value) for value in node.children_by_field_name("value")}
    for child in node.named_children:
        if _span(child) in values:
            walk.expander().run_substitutions(child)
        else:
            walk.perhaps(child, stdin)
    return ANYTHING


def case(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk every branch of a `case`."""
    for child in node.named_children:
        if child.type == "case_item":
            walk.perhaps(child, stdin)
        else:
            walk.expander().words(child)
    return ANYTHING


def for_loop(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Walk the body once, the variable having every value of the list."""
    _without_end(walk, node)
    name = node.child_by_field_name("variable")
    words = [word for value in node.children_by_field_name("value") for word in walk.expander().words(value)]
    body = node.child_by_field_name("body")
    if name is not None:
        walk.scope.assign(walk.text_of(name), tuple(dict.fromkeys(words)) or (UNKNOWN,))
    if body is not None:
        before = dict(walk.scope.variables), walk.scope.cwd
        walk.perhaps(body, stdin)
        if (walk.scope.variables, walk.scope.cwd) != before:
            walk.perhaps(body, stdin)
    return ANYTHING


def function(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Remember a function until it is called."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        walk.scope.functions[walk.text_of(name)] = (body, walk.source)
        if _calls_itself(body, walk.text_of(name).encode(), walk.source):
            walk.examiner.report(
                Finding(
                    Effect.FORK_BOMB, "", "start itself again and again", walk.text_of(name), walk.evidence_of(node, ())
                )
            )
    return NOTHING


def anything_else(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Nodes without a meaning of their own, such as tests and arithmetic: run the substitutions in them."""
    for child in node.named_children:
        if walk.knows(child):
            walk.visit(child, stdin)
        else:
            walk.expander().run_substitutions(child)
    return NOTHING


def _span(node: "Node") -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _calls_itself(body: "Node", name: bytes, source: bytes) -> bool:
    """Return whether a function's body starts the function in a pipeline or in the background."""
    pending, calls, spreads = [body], 0, False
    while pending:
        node = pending.pop()
        spreads = spreads or node.type in ("pipeline", "&")
        if node.type == "command_name" and source[node.start_byte : node.end_byte] == name:
            calls += 1
        pending.extend(node.children)
    return calls > 0 and spreads
