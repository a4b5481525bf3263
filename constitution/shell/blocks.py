"""Blocks of a script: sequences, pipelines, and-or lists, branches, loops and function definitions.

Each function walks one kind of node and returns its output, as far as it is known.
"""

from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import ANYTHING, NOTHING, Flow, one_after_the_other
from constitution.shell.walk import Walk
from constitution.tables import pattern

if TYPE_CHECKING:
    from tree_sitter import Node


def sequence(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk the statements of a list in order."""
    flows = list[Flow]()
    for child, following in zip_longest(node.children, node.children[1:]):
        if child.is_named:
            behind = following is not None and following.type == "&"  # a `cd` there has no effect here
            flows.append(walk.piped(child, stdin) if behind else walk.visit(child, stdin))
            walk.scope.stay()
    return one_after_the_other(flows)


def compound(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`{ ... }`, and `(( ... ))`, in which names stand for their values."""
    if walk.source.startswith(b"((", node.start_byte):
        walk.calculate(walk.text_of(node))
    return sequence(walk, node, stdin)


def subshell(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk a block in a copy of the scope."""
    return walk.isolated(lambda: sequence(walk, node, stdin))


def pipeline(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk the stages, each with the output of the one before as its input, each in a copy of the scope."""
    flow = stdin
    for stage in node.named_children:
        flow = walk.piped(stage, flow)
    return flow


def and_or_list(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`a && b`, `a || b`, in long chains leftmost deepest: unrolled, each right side joined."""
    chain, first = [], node
    while first.type == "list" and first.named_child_count:
        chain.append((first.named_children[1:], any(child.type == "||" for child in first.children)))
        first = first.named_children[0]
    flow = walk.visit(first, stdin)
    for rights, otherwise in reversed(chain):
        for right in rights:
            flow = one_after_the_other([flow, walk.perhaps(right, stdin)])
            if otherwise and LEAVES.search(walk.text_of(right)):
                walk.scope.left = ()  # the right side runs only if a `cd` on the left succeeded
    return flow


LEAVES = pattern(r"\b(exit|return|break|continue|die|exec)\b")


def branches(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`if` and `elif`: the condition runs, each branch may or may not run."""
    conditions = node.children_by_field_name("condition")
    for child in node.named_children:
        if child in conditions:
            walk.visit(child, stdin)
        else:
            walk.perhaps(child, stdin)
    return ANYTHING


def loop(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`while` and `until`: walk a second round if the first changes the state."""
    _without_end(walk, node)
    if node.type == "c_style_for_statement":
        walk.calculate(walk.text_of(node).partition("do")[0])
    before = walk.scope.copy()
    branches(walk, node, stdin)
    if walk.scope.variables != before.variables or walk.scope.cwd != before.cwd:
        branches(walk, node, stdin)
    return ANYTHING


def _without_end(walk: Walk, node: "Node") -> None:
    if starts_without_end(node, walk.source):
        walk.report(Effect.FORK_BOMB, "start more and more programs without end", "the loop", at=node)
    elif fills_without_end(node, walk.source):
        walk.report(Effect.FILL, "fill the disk without end", "the loop", at=node)


def case_item(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk one branch of a `case`, without its patterns."""
    values = node.children_by_field_name("value")
    for child in node.named_children:
        if child in values:
            walk.expander().run_substitutions(child)
        else:
            walk.perhaps(child, stdin)
    return ANYTHING


def case(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk every branch of a `case`."""
    for child in node.named_children:
        if child.type == "case_item":
            walk.perhaps(child, stdin)
        else:
            walk.expander().words(child)
    return ANYTHING


def for_loop(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk the body once, with every value of the list as a possible value of the variable."""
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


def function(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Remember a function until it is called."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        walk.scope.functions[walk.text_of(name)] = (body, walk.source)
        if _calls_itself(body, walk.text_of(name).encode(), walk.source):
            walk.report(Effect.FORK_BOMB, "start itself again and again", walk.text_of(name), at=node)
    return NOTHING


def anything_else(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Nodes without a meaning of their own, such as arithmetic: run the substitutions in them."""
    for child in node.named_children:
        if walk.knows(child):
            walk.visit(child, stdin)
        else:
            walk.expander().run_substitutions(child)
    return NOTHING


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


ONE = rb"[1-9]\d{0,9}"
TRUE = (
    rb"(?:true|:|/(?:usr/)?bin/true|!\s*false|echo|1|\[\s*[\w\"']+\s*\]|\[\[\s*[\w\"']+\s*\]\]|test\s+\w+|let\s+"
    + ONE
    + rb""
    rb"|\[\[?\s*([\w\"']+)\s*(?:-eq|-le|-ge|==?)\s*\1\s*\]\]?|\(\(\s*" + ONE + rb"\s*\)\))"
)
FALSE = rb"(?:false|/(?:usr/)?bin/false|!\s*(?:true|:)|\[\s*\]|\(\(\s*0\s*\)\)|test|\[\s*0\s*-eq\s*1\s*\])"
MANY = rb"(?:\{\d+\.\.\d{6,}(?:\.\.\d+)?\}|(?:\$\(|`)\s*seq\s+(?:\d+\s+)*\d{6,}\s*(?:\)|`))"
ENDLESS = pattern(
    rb"while\s+" + TRUE + rb"\s*[;\n]|until\s+" + FALSE + rb"\s*[;\n]"
    rb"|for\s*\(\([^;()]*;\s*(?:" + ONE + rb"|true)?\s*;[^()]*\)\)|for\s+\w+\s+in\s+" + MANY
)
"""Loops that are endless or over a million numbers."""

GROWS = pattern(
    rb">>\s*(?!/dev/)[^\s&]|\btee\s+-a|\b(mkdir|touch|fallocate|truncate|cp|dd)\b[^;\n]*(\$|\bx\b|;\s*cd\b)"
)
HIDDEN_BACKGROUND = pattern(rb"[^&>|\\]&\s*[)}]|[^&>|\\]&\s*;?\s*\}")
PAUSES = pattern(rb"\b(sleep|wait|read|break|exit|inotifywait|select|timeout)\b")


def starts_without_end(node: "Node", source: bytes) -> bool:
    """Return whether an endless loop starts programs in the background and never waits."""
    text = source[node.start_byte : node.end_byte]
    if ENDLESS.match(text) is None:
        return False
    bodies = [child for child in node.named_children if child.type in ("do_group", "compound_statement")]
    followed = [pair for body in bodies for pair in pairwise(body.children)]
    waits = (one for one, next_one in followed if next_one.type != "&" and one.is_named)
    if any(next_one.type == "&" for _, next_one in followed):
        return not any(PAUSES.search(source[one.start_byte : one.end_byte]) for one in waits)
    return HIDDEN_BACKGROUND.search(text) is not None and PAUSES.search(text) is None


def fills_without_end(node: "Node", source: bytes) -> bool:
    """Return whether an endless loop appends to a file, or creates more and more files, and never waits."""
    text = source[node.start_byte : node.end_byte]
    return ENDLESS.match(text) is not None and GROWS.search(text) is not None and PAUSES.search(text) is None
