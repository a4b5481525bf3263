"""Redirections: what they open, what input they leave, and the words that the tree puts behind them."""

from typing import TYPE_CHECKING

from constitution.shell.flow import ANYTHING, Flow, Origin
from constitution.shell.heredoc import backtick_scripts, body_of, is_quoted
from constitution.zones import FETCHED, UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

    from constitution.shell.walk import Walk

PRINTS = frozenset({">", ">>", ">|", "&>", "&>>"})

__all__ = ["late_words", "redirect"]


def late_words(walk: "Walk", redirect: "Node") -> list[str]:
    """Words of the command that stand behind its here-document's end word."""
    if redirect.type == "heredoc_redirect":
        return [word for node in redirect.children_by_field_name("argument") for word in walk.expander().words(node)]
    if redirect.type == "file_redirect":  # the tree takes words behind the target for more targets
        targets = redirect.children_by_field_name("destination")
        return [word for node in targets[1:] for word in walk.expander().words(node)]
    return []


def redirect(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    """Report what a redirection opens and return the input that it leaves."""
    if node.type == "herestring_redirect":
        text = "".join(walk.expander().text(child) for child in node.named_children)
        if UNKNOWN not in text:
            return Flow(Origin.TEXT, text + "\n")
        return Flow(Origin.FETCHED) if FETCHED in text else Flow(Origin.ANYTHING, text)
    if node.type == "heredoc_redirect":
        return _heredoc(walk, node, stdin)
    targets = node.children_by_field_name("destination")[:1]
    operator = next((child.type for child in node.children if not child.is_named), ">")
    for target in targets:
        stdin = _open(walk, operator, walk.expander().words(target), stdin)
    return stdin


def _open(walk: "Walk", operator: str, words: list[str], stdin: Flow) -> Flow:
    for word in words or [UNKNOWN]:
        if operator in (">&", "<&") and (word.isdigit() or word == "-"):
            stdin = ANYTHING if operator == "<&" and word.isdigit() else stdin
            continue
        walk.examiner.redirect(operator, word, walk)
        if operator in PRINTS:
            walk.outputs.append(word)
        if operator == "<":
            stdin = walk.examiner.content(word, walk)
    return stdin


def _heredoc(walk: "Walk", node: "Node", stdin: Flow) -> Flow:
    for child in node.children_by_field_name("redirect"):
        redirect(walk, child, stdin)
    text, known = body_of(node, walk.source), True
    if not is_quoted(node, walk.source):
        for child in node.named_children:
            if child.type == "heredoc_body":
                walk.expander().run_substitutions(child)
                known = child.named_child_count == 0 or "$" not in text
        for script in backtick_scripts(text):
            walk.nested(script)
            known = False
    return Flow(Origin.TEXT, text) if known else Flow(Origin.TEXT, text.replace("`", ""))
