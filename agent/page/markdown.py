"""Markdown as a tree that the script of a page draws; text of a model stays text in it."""

from collections.abc import Iterable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

NESTED = 20  # nested blocks; a text with more of them is shown as it is
DEEPEST = 60  # nested elements; deeper ones are put into the deepest allowed

Tree = list[Any]
"""An element: its tag, its attributes, then its children, each a text or a tree."""


def tree_of(text: str) -> Tree:
    """Return the tree of a markdown text. All of it is visible: HTML stays text, links and images show targets."""
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTED})
    blocks = reader.enable(["table", "strikethrough"]).disable("reference").parse(text)
    if any(block.level >= NESTED - 1 for block in blocks):  # the parser drops deeper blocks
        return ["div", {}, text]
    stack: list[Tree] = [["div", {"class": "markdown"}]]
    leads_to = ""
    for token in _flat(blocks):
        if token.nesting > 0:
            leads_to = _address(token, "href") or leads_to
            stack.append(_begun(token, stack[-1]) if len(stack) < DEEPEST else stack[-1])
        elif token.nesting < 0:
            closed = stack.pop()
            if token.type == "link_close" and closed[2:] != [leads_to]:
                stack[-1].append(f" ({leads_to})")
        else:
            stack[-1].append(_leaf(token))
    return stack[0]


def _flat(blocks: Iterable[Token]) -> Iterator[Token]:
    """Yield the visible tokens of blocks, each followed by those of its text."""
    for token in blocks:
        if token.type == "inline":
            yield from token.children or ()
        elif not token.hidden:
            yield token


def _begun(token: Token, parent: Tree) -> Tree:
    start = token.attrGet("start")
    made: Tree = ["span" if token.tag == "a" else token.tag, {} if start is None else {"start": start}]
    parent.append(made)
    return made


def _leaf(token: Token) -> Tree | str:
    match token.type:
        case "fence" | "code_block":
            language = [["small", {}, f"{token.info.strip()}\n"]] if token.info.strip() else []
            return ["pre", {}, *language, token.content.rstrip("\n")]
        case "code_inline":
            return ["code", {}, token.content]
        case "hr":
            return ["hr", {}]
        case "softbreak" | "hardbreak":
            return "\n"
        case "image":
            return f"{token.content} ({_address(token, 'src')})"
        case _:
            return token.content


def _address(token: Token, name: str) -> str:
    title = token.attrGet("title")
    return f"{token.attrGet(name) or ''}{f' {title!r}' if title else ''}"
