"""What stands in a here-document, and the backtick substitutions that the parser does not see in it."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["backtick_scripts", "body_of", "is_quoted"]


def body_of(node: "Node", source: bytes) -> str:
    """Return the text of the here-document of a `heredoc_redirect` node."""
    bodies = [child for child in node.named_children if child.type == "heredoc_body"]
    return "".join(source[body.start_byte : body.end_byte].decode("utf-8", "replace") for body in bodies)


def is_quoted(node: "Node", source: bytes) -> bool:
    """Return whether the end word is quoted, so that nothing in the body is expanded."""
    starts = [child for child in node.named_children if child.type == "heredoc_start"]
    return any(re.search(rb"['\"\\]", source[start.start_byte : start.end_byte]) for start in starts)


def backtick_scripts(body: str) -> list[str]:
    r"""Return the scripts between backticks; the last one may lack its end. An escaped backtick is text."""
    parts = re.split(r"(?<!\\)`", body)
    return [part.replace("\\`", "`") for part in parts[1::2]]
