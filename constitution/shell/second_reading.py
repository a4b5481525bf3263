"""A second look at the text, for substitutions that the parser may have taken for plain text.

Where a leaf of the tree still holds `$(`, a backtick or `<(` outside quotes, the two readings disagree: a doubt.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["overlooked"]

OPENING = re.compile(rb"(?<!\\)(?:\\\\)*(?:\$\(|`|[<>]\()")
PLAIN = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_content", "heredoc_body", "string_content"})
ESCAPED = re.compile(rb"\\[ \t]")
WHOLE = frozenset({"string", "heredoc_body", "heredoc_redirect"})
DOLLAR = re.compile(rb"(?<!\\)(?:\\\\)*(?:\$\(|`)")


def overlooked(root: "Node", source: bytes) -> list[str]:
    """Return why the tree of `source` is doubtful: at most one reason."""
    if ESCAPED.search(source) and not _are_covered(root, source):
        return ["the parser leaves something out"]
    if not OPENING.search(source):
        return []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.child_count:
            pending.extend(node.children)
        elif node.is_named and _hides(node, source):
            return ["a substitution stands where the parser sees none"]
    return []


def _are_covered(root: "Node", source: bytes) -> bool:
    """Tell whether every escaped character stands in a word: the parser forgets some escaped blanks."""
    places = {match.start() for match in ESCAPED.finditer(source)}
    pending = [root]
    while pending and places:
        node = pending.pop()
        if node.child_count and node.type not in WHOLE:
            pending.extend(node.children)
        else:
            places -= {place for place in places if node.start_byte <= place < node.end_byte}
    return not places


def _hides(node: "Node", source: bytes) -> bool:
    text = source[node.start_byte : node.end_byte]
    if node.type in ("string_content", "regex"):
        return DOLLAR.search(text) is not None
    return node.type not in PLAIN and OPENING.search(text) is not None
