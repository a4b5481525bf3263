"""Which loops never end by themselves and use up the machine: they start programs and never wait, or fill the disk."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["fills_without_end", "starts_without_end"]

ONE = rb"[1-9]\d{0,9}"
TRUE = (
    rb"(?:true|:|/(?:usr/)?bin/true|!\s*false|echo|1|\[\s*[\w\"']+\s*\]|\[\[\s*[\w\"']+\s*\]\]|test\s+\w+|let\s+"
    + ONE
    + rb""
    rb"|\[\[?\s*([\w\"']+)\s*(?:-eq|-le|-ge|==?)\s*\1\s*\]\]?|\(\(\s*" + ONE + rb"\s*\)\))"
)
FALSE = rb"(?:false|/(?:usr/)?bin/false|!\s*(?:true|:)|\[\s*\]|\(\(\s*0\s*\)\)|test|\[\s*0\s*-eq\s*1\s*\])"
MANY = rb"(?:\{\d+\.\.\d{6,}(?:\.\.\d+)?\}|(?:\$\(|`)\s*seq\s+(?:\d+\s+)*\d{6,}\s*(?:\)|`))"
ENDLESS = re.compile(
    rb"while\s+" + TRUE + rb"\s*[;\n]|until\s+" + FALSE + rb"\s*[;\n]"
    rb"|for\s*\(\([^;()]*;\s*(?:" + ONE + rb"|true)?\s*;[^()]*\)\)|for\s+\w+\s+in\s+" + MANY
)
"""Loops whose condition always holds, and those over a million numbers."""

GROWS = re.compile(
    rb">>\s*(?!/dev/)[^\s&]|\btee\s+-a|\b(mkdir|touch|fallocate|truncate|cp|dd)\b[^;\n]*(\$|\bx\b|;\s*cd\b)"
)
HIDDEN_BACKGROUND = re.compile(rb"[^&>|\\]&\s*[)}]|[^&>|\\]&\s*;?\s*\}")
PAUSES = re.compile(rb"\b(sleep|wait|read|break|exit|inotifywait|select|timeout)\b")


def starts_without_end(node: "Node", source: bytes) -> bool:
    """Tell whether a loop without end starts programs in the background and never waits."""
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
    """Tell whether a loop without end appends to a file, or makes more and more of them, and never waits."""
    text = source[node.start_byte : node.end_byte]
    return ENDLESS.match(text) is not None and GROWS.search(text) is not None and PAUSES.search(text) is None
