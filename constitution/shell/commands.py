"""Simple commands, assignments and redirections, expanded once for each possible value of their variables."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from constitution.effects import UNKNOWN
from constitution.shell.blocks import pipeline
from constitution.shell.scope import ANYTHING, NOTHING, Flow, Origin
from constitution.shell.syntax import is_quoted
from constitution.shell.walk import Walk
from constitution.shell.words import Expander
from constitution.tables import pattern
from constitution.tables.rows import changes_commands
from constitution.zones import FETCHED

if TYPE_CHECKING:
    from tree_sitter import Node


def command(walk: Walk, node: "Node", stdin: Flow, extra: list[str] | tuple[str, ...] = ()) -> Flow:
    """Expand a simple command for each possible value of its variables, and examine it."""
    expander, before = walk.expander(), walk.outputs
    walk.outputs = []
    argv, stdin = _argv(walk, node, expander, stdin)
    if expander.doubtful:
        for choice in expander.several()[1:]:
            other = walk.expander()
            other.choice = choice
            walk.simple(node, [*_argv(walk, node, other, stdin)[0], *extra], stdin)
    flow = walk.simple(node, [*argv, *extra], stdin)
    _printed(walk, flow, before)
    return flow


def _argv(walk: Walk, node: "Node", expander: Expander, stdin: Flow) -> tuple[list[str], Flow]:
    argv, group, end = list[str](), list["Node"](), -1
    for child in node.children:
        kind = child.type
        if kind == "variable_assignment":
            _report(walk, child, assignment_values(walk, child), exported=True)
        elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            argv.extend(late_words(walk, child))
            stdin = redirect(walk, child, stdin)
        elif kind == "subshell":
            walk.visit(child)
        else:
            if child.start_byte != end:  # else part of the word before: the parser splits `$a/$b/c`
                argv.extend(expander.joined(group) if group else ())
                group = []
            group.append(child.children[0] if kind == "command_name" and child.child_count == 1 else child)
            end = child.end_byte
    argv.extend(expander.joined(group))
    return argv, stdin


def content(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`$(< FILE)`: a redirection alone in a substitution prints the file."""
    return redirect(walk, node, NOTHING)


def assign(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Set the variables of `a=b`, `declare a=b`, `export a=b`."""
    if node.type == "declaration_command" and all(child.type == "word" for child in node.named_children):
        return walk.simple(node, [walk.text_of(child) for child in node.children], stdin)
    words = [walk.text_of(child) for child in node.named_children if child.type == "word"]
    evaluated = any(word[:1] == "-" and {"i", "n"} & set(word) for word in words)  # numbers, namerefs
    refers = any(word[:1] == "-" and "n" in word for word in words)
    for child in [node] if node.type == "variable_assignment" else node.named_children:
        if child.type == "variable_assignment":
            _set(walk, child)
            if refers and any(map(changes_commands, assignment_values(walk, child))):
                walk.evaluate(UNKNOWN)  # a nameref: assignments go to the other name
            if evaluated and any(UNKNOWN in value for value in assignment_values(walk, child)):
                walk.evaluate(UNKNOWN)
        elif child.type not in ("variable_name", "word"):
            for word in walk.expander().words(child):
                _declared(walk, word)
    return NOTHING


def _declared(walk: Walk, word: str) -> None:
    """Record a word of `declare` that is an assignment but not parsed as one: `declare "a=b"`."""
    name, equals, value = word.partition("=")
    if equals and name.isidentifier():
        walk.set(name, (value,))
    elif not word.startswith("-"):
        walk.evaluate(name)


def _set(walk: Walk, node: "Node") -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    walk.reads_text = False
    values = assignment_values(walk, node)
    _report(walk, node, values, exported=_is_exported(walk, node))
    if name is None or name.type != "variable_name":
        base = name.named_children[0] if name is not None and name.named_children else None
        if base is not None:
            walk.scope.assign(walk.text_of(base), (UNKNOWN,))
        return
    if value is not None and value.type == "array":
        grows = any(child.type == "+=" for child in node.children)
        before = walk.scope.arrays.get(walk.text_of(name), ()) if grows else ()
        walk.scope.assign(walk.text_of(name), (UNKNOWN,))
        expander = walk.expander()
        words = (word for item in value.named_children for word in expander.words(item))
        walk.scope.arrays[walk.text_of(name)] = (*before, *words)
    elif any(child.type == "+=" for child in node.children):
        old = walk.scope.values(walk.text_of(name))
        walk.scope.assign(walk.text_of(name), tuple(before + after for before in old for after in values))
    else:
        walk.scope.assign(walk.text_of(name), values)
        if any(UNKNOWN in value for value in values) and _is_declared(walk, name, b"i"):
            walk.evaluate(UNKNOWN)
        if walk.reads_text:
            walk.scope.texts |= {walk.text_of(name)}


def _is_exported(walk: Walk, node: "Node") -> bool:
    """Return whether an assignment exports its variable: `export a=b`, `declare -x a=b`."""
    if node.parent is None or node.parent.type != "declaration_command":
        return False
    words = [walk.text_of(child) for child in node.parent.children if child.type != "variable_assignment"]
    return "export" in words or any(word[:1] == "-" and "x" in word for word in words)


def _report(walk: Walk, node: "Node", values: tuple[str, ...], *, exported: bool) -> None:
    name = node.child_by_field_name("name")
    if name is not None:
        variable = walk.text_of(name).partition("[")[0]  # an element counts as the whole
        walk.examiner.assigned(variable, values, walk, exported=exported)


def assignment_values(walk: Walk, node: "Node") -> tuple[str, ...]:
    """Return the possible values of an assignment, and run the substitutions in it."""
    value, name = node.child_by_field_name("value"), node.child_by_field_name("name")
    if name is not None and name.type == "subscript":
        walk.expander().run_substitutions(name)
        _evaluate_subscript(walk, name)
    if value is None:
        return ("",)
    if value.type == "array":
        walk.expander().run_substitutions(value)
        return (UNKNOWN,)
    expander = walk.expander()
    first = expander.text(value)
    if not expander.doubtful:
        return (first,)
    values = []
    for choice in expander.several():
        expander.choice = choice
        values.append(expander.text(value))
    return tuple(dict.fromkeys(values))


def _evaluate_subscript(walk: Walk, node: "Node") -> None:
    """`a['$(x)']=1`: the subscript is evaluated as a number once its quotes are gone."""
    for child in node.named_children[1:]:
        text = walk.expander().text(child)
        walk.calculate("" if _is_declared(walk, node.named_children[0], b"A") else walk.text_of(child))
        if child.type != "word":
            walk.evaluate(f"a[{text.replace(UNKNOWN, '0')}]")


def _is_declared(walk: Walk, name: "Node", attribute: bytes) -> bool:
    """Return whether the script declares a variable with an attribute: `declare -A name`, `typeset -i name`."""
    named = rb"-\w*" + attribute + rb"\w*[^;&|\n]*\b" + re.escape(walk.source[name.start_byte : name.end_byte]) + rb"\b"
    return re.search(rb"\b(declare|typeset|local|readonly|export)\b[^;&|\n]*\s" + named, walk.source) is not None


def test(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """`[ ... ]` and `[[ ... ]]`: `-v` takes a name; `-eq` and similar operators evaluate numbers."""
    text, words = walk.text_of(node), list[str]()
    walk.reads_text = False
    for child in _leaves(node):
        plain = child.type == "test_operator" or not child.is_named
        words.extend([walk.text_of(child)] if plain else walk.expander().words(child) or [""])
    for before, word in pairwise(words):
        if before == "-v":
            walk.evaluate(word)
    if text.startswith("[[") and COMPARED.search(text):
        walk.calculate(text)
        for word in words:
            walk.evaluate(word.replace(UNKNOWN, "0"))
        if walk.reads_text:
            walk.evaluate(UNKNOWN)
    return NOTHING


def _leaves(node: "Node") -> "list[Node]":
    """Return the operators and operands of a test, in order."""
    found: list[Node] = []
    for child in node.children:
        inner = child.type.endswith("_expression") and child.type != "brace_expression"
        found.extend(_leaves(child) if inner else [child])
    return found


COMPARED = pattern(r"\s-(eq|ne|lt|le|gt|ge)\s")


def unset(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Forget variables."""
    for child in node.named_children:
        for word in walk.expander().words(child) if child.type != "variable_name" else ():
            walk.evaluate(word)
        walk.scope.assign(walk.text_of(child), ("",))
        walk.examiner.assigned(walk.text_of(child), ("",), walk)
    return NOTHING


def redirected(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Walk a command with its redirections; after a list or pipeline they belong to its last command."""
    body, redirects = _redirections(walk, node)
    if body is not None and (last := _last_command(body)) != body:
        walk.redirects[last.id] = redirects
        flow = walk.visit(body, stdin)
        if walk.redirects.pop(last.id, None) is not None:
            walk.doubt("a redirection was not followed")
        return flow
    before, walk.outputs = walk.outputs, []
    extra = [word for child in redirects for word in late_words(walk, child)]
    if body is not None and redirects and (left_out := _between(walk, body, redirects[0])):
        extra[:0] = left_out
    for child in redirects:
        stdin = redirect(walk, child, stdin)
    flow = NOTHING
    if body is not None:
        flow = command(walk, body, stdin, extra) if body.type == "command" else walk.visit(body, stdin)
    elif extra:
        flow = walk.simple(node, extra, stdin)
    _printed(walk, flow, before)
    for child in redirects:
        flow = _after_heredoc(walk, child, flow)
    return flow


def _redirections(walk: Walk, node: "Node") -> tuple["Node | None", list["Node"]]:
    if node.id in walk.redirects:
        return node, walk.redirects.pop(node.id)
    body = node.child_by_field_name("body")
    return body, [child for child in node.named_children if "redirect" in child.type and child != body]


def _last_command(node: "Node") -> "Node":
    """Return the command of a redirection after `a && b`, `a | b` or `! a`."""
    while node.type in ("list", "pipeline", "negated_command") and node.named_children:
        node = node.named_children[-1]
    return node


def _between(walk: Walk, body: "Node", redirect: "Node") -> list[str]:
    """Return the words before a redirection that are missing in the tree: the `-` of `cat - <<END`."""
    words = walk.source[body.end_byte : redirect.start_byte].decode("utf-8", "replace").replace("\\\n", " ").split()
    if words and words != ["-"]:
        walk.doubt("the parser leaves something out")
    return words


def _printed(walk: Walk, flow: Flow, before: list[str]) -> None:
    """Record a command's output in the files of its redirections."""
    targets, walk.outputs = walk.outputs, before
    for target in targets:
        walk.examiner.wrote(target, flow, walk)


def _after_heredoc(walk: Walk, redirect: "Node", flow: Flow) -> Flow:
    """Walk the rest of the line after `<<END`: the rest of a pipeline, or of an and-or list."""
    if redirect.type != "heredoc_redirect":
        return flow
    for child in redirect.named_children:
        if child.type == "pipeline":
            flow = pipeline(walk, child, flow)
        elif child.type in ("command", "list", "redirected_statement", "subshell", "compound_statement"):
            piped = any(other.type == "|" for other in redirect.children)
            flow = walk.piped(child, flow) if piped else walk.perhaps(child, NOTHING)
    return flow


CLOSES = frozenset({"<&-", ">&-"})  # operators without a target
PRINTS = frozenset({">", ">>", ">|", "&>", "&>>"})


def late_words(walk: Walk, redirect: "Node") -> list[str]:
    """Return the words of the command after its here-document's end word."""
    if redirect.type == "heredoc_redirect":
        return [word for node in redirect.children_by_field_name("argument") for word in walk.expander().words(node)]
    if redirect.type == "file_redirect":  # in the tree, words after the target are more targets
        targets = redirect.children_by_field_name("destination")
        words = targets if any(child.type in CLOSES for child in redirect.children) else targets[1:]
        return [word for node in words for word in walk.expander().words(node)]
    return []


def redirect(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    """Report the file of a redirection and return the resulting input."""
    if node.type == "herestring_redirect":
        text = "".join(walk.expander().text(child) for child in node.named_children)
        if UNKNOWN not in text:
            return Flow(Origin.TEXT, text + "\n")
        return Flow(Origin.FETCHED) if FETCHED in text else Flow(Origin.ANYTHING, text)
    if node.type == "heredoc_redirect":
        return _heredoc(walk, node, stdin)
    operator = next((child.type for child in node.children if not child.is_named), ">")
    targets = [] if operator in CLOSES else node.children_by_field_name("destination")[:1]
    for target in targets:
        stdin = _open(walk, operator, walk.expander().words(target), stdin)
    return stdin


def _open(walk: Walk, operator: str, words: list[str], stdin: Flow) -> Flow:
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


def _heredoc(walk: Walk, node: "Node", stdin: Flow) -> Flow:
    for child in node.children_by_field_name("redirect"):
        redirect(walk, child, stdin)
    bodies = [child for child in node.named_children if child.type == "heredoc_body"]
    text, known = "".join(map(walk.text_of, bodies)), True
    if not is_quoted(node, walk.source):
        for body in bodies:
            walk.expander().run_substitutions(body)
            known = body.named_child_count == 0 or "$" not in text
        for script in backtick_scripts(text):
            walk.nested(script)
            known = False
    return Flow(Origin.TEXT, text) if known else Flow(Origin.TEXT, text.replace("`", ""))


def backtick_scripts(body: str) -> list[str]:
    r"""Return the scripts between backticks; the last one may lack its end. An escaped backtick is text."""
    parts = re.split(r"(?<!\\)`", body)
    return [part.replace("\\`", "`") for part in parts[1::2]]
