"""How a script is walked: every simple command anywhere in it reaches `Examiner.examine`, with what is known there.

The walk follows the shell: sequences in order, pipelines in copies of the scope, branches joined afterwards, loops over
their values, functions where they are called (and, if never, once with unknown arguments).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from constitution.effects import Effect, Finding
from constitution.shell.flow import ANYTHING, NOTHING, Flow, Origin
from constitution.shell.heredoc import backtick_scripts, body_of, is_quoted
from constitution.shell.scope import Scope
from constitution.shell.second_reading import overlooked
from constitution.shell.syntax import parse
from constitution.shell.words import Expander
from constitution.verdict import Evidence
from constitution.zones import FETCHED, UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_DEPTH", "Examiner", "Walk"]

MAX_DEPTH = 24
"""Scripts within scripts, and blocks within blocks, are followed this deep."""

MAX_COMMANDS = 2_000
"""Commands examined for one judgement; loops and functions can multiply them."""


class Examiner(Protocol):
    """Takes each simple command as words, and says what goes into the pipe behind it."""

    def examine(self, argv: list[str], stdin: Flow, walk: "Walk") -> Flow: ...

    def redirect(self, operator: str, target: str, walk: "Walk") -> None: ...

    def report(self, finding: Finding) -> None: ...


class Budget:
    """Counts commands and depth over all scripts of one judgement."""

    def __init__(self) -> None:
        self.commands = 0
        self.depth = 0


class Walk:
    """One script being walked in one scope. Scripts within it get walks of their own by `nested`."""

    def __init__(self, examiner: Examiner, scope: Scope, budget: Budget | None = None,
                 outer: Evidence | None = None) -> None:  # fmt: skip
        self.examiner = examiner
        self.scope = scope
        self.budget = budget or Budget()
        self.outer = outer
        self.evidence = outer or Evidence("")
        self.source = b""
        self.active: tuple[str, ...] = ()
        self.called: set[str] = set()

    def run(self, text: str, stdin: Flow = NOTHING) -> Flow:
        """Walk a whole script and return what it would write to its standard output."""
        script = parse(text)
        self.source = script.source
        if self.outer is None:
            self.evidence = Evidence(text[:200], 0, len(text))
        if script.doubt:
            self.doubt(script.doubt)
        if script.root is None:
            return ANYTHING
        for why in overlooked(script.root, script.source):
            self.doubt(why)
        flow = self.visit(script.root, stdin)
        self._uncalled()
        return flow

    def nested(self, text: str, stdin: Flow = NOTHING, *, scope: Scope | None = None) -> Flow:
        """Walk a script that stands in a word of this one; its evidence is the command that holds it."""
        if self.budget.depth >= MAX_DEPTH:
            self.doubt("scripts are nested too deep")
            return ANYTHING
        if UNKNOWN in text:
            effect = Effect.RUN_FETCHED_CODE if FETCHED in text else Effect.RUN_UNKNOWN_CODE
            self.examiner.report(Finding(effect, "", "run text that cannot be known", "", self.evidence))
        self.budget.depth += 1
        flow = Walk(self.examiner, scope or self.scope, self.budget, self.evidence).run(
            text.replace(FETCHED, "$_UNKNOWN_").replace(UNKNOWN, "$_UNKNOWN_"), stdin
        )
        self.budget.depth -= 1
        return flow

    def doubt(self, why: str) -> None:
        """Report that this script cannot be read with certainty."""
        self.examiner.report(Finding(Effect.UNREADABLE, "", f"do something that cannot be read with certainty: {why}",
                                     "the command", self.evidence))  # fmt: skip

    def visit(self, node: "Node", stdin: Flow = NOTHING) -> Flow:
        """Walk one node with `stdin` as its input and return its output."""
        if self.budget.depth >= MAX_DEPTH:
            self.doubt("blocks are nested too deep")
            return ANYTHING
        self.budget.depth += 1
        flow = VISITORS.get(node.type, Walk._anything_else)(self, node, stdin)
        self.budget.depth -= 1
        return flow

    # Blocks.

    def _sequence(self, node: "Node", stdin: Flow) -> Flow:
        flows = [self.visit(child, stdin) for child in node.named_children]
        flows = [flow for flow in flows if flow.origin is not Origin.NOTHING]
        if len(flows) == 1:
            return flows[0]
        return ANYTHING if flows else NOTHING

    def _subshell(self, node: "Node", stdin: Flow) -> Flow:
        return self._isolated(lambda: self._sequence(node, stdin))

    def _isolated(self, act: "Callable[[], Flow]") -> Flow:
        before, self.scope = self.scope, self.scope.copy()
        try:
            return act()
        finally:
            self.scope = before

    def _pipeline(self, node: "Node", stdin: Flow) -> Flow:
        flow = stdin
        for stage in node.named_children:
            flow = self._piped(stage, flow)
        return flow

    def _piped(self, stage: "Node", flow: Flow) -> Flow:
        return self._isolated(lambda: self.visit(stage, flow))

    def _list(self, node: "Node", stdin: Flow) -> Flow:
        """`a && b`, `a || b`, in long chains leftmost deepest: unrolled, each right side joined."""
        chain, first = [], node
        while first.type == "list" and first.named_child_count:
            chain.append(first.named_children[1:])
            first = first.named_children[0]
        flow = self.visit(first, stdin)
        for rights in reversed(chain):
            for right in rights:
                flow = self._perhaps(right, stdin)
        return ANYTHING if chain else flow

    def _perhaps(self, node: "Node", stdin: Flow) -> Flow:
        before = self.scope.copy()
        flow = self.visit(node, stdin)
        self.scope.join(before)
        return flow

    def _branches(self, node: "Node", stdin: Flow) -> Flow:
        """`if`, `case`, `while`: conditions and bodies, each of which may or may not run."""
        for child in node.named_children:
            self._perhaps(child, stdin)
        return ANYTHING

    def _case_item(self, node: "Node", stdin: Flow) -> Flow:
        self._expander().run_substitutions(node.named_children[0]) if node.named_children else None
        values = set(map(_span, node.children_by_field_name("value")))
        for child in node.named_children:
            if _span(child) not in values:
                self._perhaps(child, stdin)
        return ANYTHING

    def _case(self, node: "Node", stdin: Flow) -> Flow:
        for child in node.named_children:
            if child.type == "case_item":
                self._perhaps(child, stdin)
            else:
                self._expander().words(child)
        return ANYTHING

    def _for(self, node: "Node", stdin: Flow) -> Flow:
        name = node.child_by_field_name("variable")
        words = [word for value in node.children_by_field_name("value") for word in self._expander().words(value)]
        body = node.child_by_field_name("body")
        if name is not None:
            self.scope.assign(self._text(name), tuple(dict.fromkeys(words)) or (UNKNOWN,))
        if body is not None:
            self._perhaps(body, stdin)
        return ANYTHING

    def _function(self, node: "Node", stdin: Flow) -> Flow:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[self._text(name)] = (body, self.source)
            if _calls_itself(body, self._text(name).encode(), self.source):
                self.examiner.report(Finding(Effect.FORK_BOMB, "", "start itself again and again",
                                             self._text(name), self._evidence(node, ())))  # fmt: skip
        return NOTHING

    def _uncalled(self) -> None:
        """Walk functions that nobody called, their arguments unknown."""
        for name, (body, source) in list(self.scope.functions.items()):
            if name not in self.called and name not in self.active:
                self._call(name, body, source, None, NOTHING)

    def _call(self, name: str, body: "Node", source: bytes, arguments: tuple[str, ...] | None, stdin: Flow) -> Flow:
        self.called.add(name)
        outside, positional = (self.source, self.active), self.scope.positional
        self.source, self.active, self.scope.positional = source, (*self.active, name), arguments
        flow = self.visit(body, stdin)
        (self.source, self.active), self.scope.positional = outside, positional
        return flow

    def _anything_else(self, node: "Node", stdin: Flow) -> Flow:
        """Nodes without a meaning of their own, such as tests and arithmetic: run the substitutions in them."""
        for child in node.named_children:
            if child.type in VISITORS:
                self.visit(child, stdin)
            else:
                self._expander().run_substitutions(child)
        return NOTHING

    # Redirections.

    def _redirected(self, node: "Node", stdin: Flow) -> Flow:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        extra = [word for redirect in redirects for word in self._late_words(redirect)]
        for redirect in redirects:
            stdin = self._redirect(redirect, stdin)
        flow = NOTHING
        if body is not None:
            flow = self._command(body, stdin, extra) if body.type == "command" else self.visit(body, stdin)
        for redirect in redirects:
            flow = self._after_heredoc(redirect, flow)
        return flow

    def _late_words(self, redirect: "Node") -> list[str]:
        """Words of the command that stand behind its here-document's end word."""
        if redirect.type == "heredoc_redirect":
            return [word for node in redirect.children_by_field_name("argument") for word in self._expander().words(node)]
        if redirect.type == "file_redirect":  # the tree takes words behind the target for more targets
            targets = redirect.children_by_field_name("destination")
            return [word for node in targets[1:] for word in self._expander().words(node)]
        return []

    def _redirect(self, node: "Node", stdin: Flow) -> Flow:
        """Report what a redirection opens and return the input that it leaves."""
        if node.type == "herestring_redirect":
            text = "".join(self._expander().text(child) for child in node.named_children)
            return Flow(Origin.TEXT, text) if UNKNOWN not in text else ANYTHING
        if node.type == "heredoc_redirect":
            return self._heredoc(node, stdin)
        targets = node.children_by_field_name("destination")[:1]
        operator = next((child.type for child in node.children if not child.is_named), ">")
        for target in targets:
            stdin = self._open(operator, self._expander().words(target), stdin)
        return stdin

    def _open(self, operator: str, words: list[str], stdin: Flow) -> Flow:
        for word in words or [UNKNOWN]:
            if operator in (">&", "<&") and (word.isdigit() or word == "-"):
                continue
            self.examiner.redirect(operator, word, self)
            if operator == "<":
                stdin = Flow(Origin.FILE, names=(word,))
        return stdin

    def _heredoc(self, node: "Node", stdin: Flow) -> Flow:
        for child in node.children_by_field_name("redirect"):
            self._redirect(child, stdin)
        text, known = body_of(node, self.source), True
        if not is_quoted(node, self.source):
            for child in node.named_children:
                if child.type == "heredoc_body":
                    self._expander().run_substitutions(child)
                    known = child.named_child_count == 0 or "$" not in text
            for script in backtick_scripts(text):
                self.nested(script)
                known = False
        return Flow(Origin.TEXT, text) if known else Flow(Origin.TEXT, text.replace("`", ""))

    def _after_heredoc(self, redirect: "Node", flow: Flow) -> Flow:
        """What follows `<<END` on its line: the rest of a pipeline, or of an and-or list."""
        if redirect.type != "heredoc_redirect":
            return flow
        for child in redirect.named_children:
            if child.type == "pipeline":
                flow = self._pipeline(child, flow)
            elif child.type in ("command", "list", "redirected_statement", "subshell", "compound_statement"):
                piped = any(other.type == "|" for other in redirect.children)
                flow = self._piped(child, flow) if piped else self._perhaps(child, NOTHING)
        return flow

    # Commands.

    def _command(self, node: "Node", stdin: Flow, extra: list[str] | tuple[str, ...] = ()) -> Flow:
        """Expand a simple command, once for each value that its variables may have, and have it examined."""
        expander = self._expander()
        argv, stdin = self._argv(node, expander, stdin)
        if expander.doubtful:
            for choice in expander.several()[1:]:
                other = self._expander()
                other.choice = choice
                self._simple(node, [*self._argv(node, other, stdin)[0], *extra], stdin)
        return self._simple(node, [*argv, *extra], stdin)

    def _argv(self, node: "Node", expander: Expander, stdin: Flow) -> tuple[list[str], Flow]:
        argv = list[str]()
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                self._assignment_values(child)
            elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                argv.extend(self._late_words(child))
                stdin = self._redirect(child, stdin)
            elif kind == "subshell":
                self.visit(child)
            elif kind == "command_name":
                argv.extend(expander.words(child.children[0] if child.child_count == 1 else child))
            else:
                argv.extend(expander.words(child))
        return argv, stdin

    def _simple(self, node: "Node", argv: list[str], stdin: Flow) -> Flow:
        self.budget.commands += 1
        if self.budget.commands > MAX_COMMANDS:
            if self.budget.commands == MAX_COMMANDS + 1:
                self.doubt("too many commands")
            return ANYTHING
        if not argv:
            return NOTHING
        self.evidence = self._evidence(node, argv)
        return self.invoke(argv, stdin)

    def invoke(self, argv: list[str], stdin: Flow) -> Flow:
        """Examine words as a command in this scope: a function, an alias, or a program."""
        name = argv[0]
        if name in self.active:
            return ANYTHING
        if name in self.scope.functions:
            body, source = self.scope.functions[name]
            return self._call(name, body, source, tuple(argv[1:]), stdin)
        if name in self.scope.aliases:
            self.nested(" ".join([self.scope.aliases[name], *argv[1:]]), stdin)
        return self.examiner.examine(argv, stdin, self)

    # Variables.

    def _assign(self, node: "Node", stdin: Flow) -> Flow:
        """Set the variables of `a=b`, `declare a=b`, `export a=b`; what else is declared stays as it is."""
        for child in [node] if node.type == "variable_assignment" else node.named_children:
            if child.type == "variable_assignment":
                self._set(child)
            elif child.type not in ("variable_name", "word"):
                self._expander().words(child)
        return NOTHING

    def _set(self, node: "Node") -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        values = self._assignment_values(node)
        if name is None or name.type != "variable_name":
            base = name.named_children[0] if name is not None and name.named_children else None
            if base is not None:
                self.scope.assign(self._text(base), (UNKNOWN,))
            return
        if value is not None and value.type == "array":
            self.scope.assign(self._text(name), (UNKNOWN,))
            expander = self._expander()
            self.scope.arrays[self._text(name)] = tuple(w for item in value.named_children for w in expander.words(item))
        elif any(child.type == "+=" for child in node.children):
            old = self.scope.values(self._text(name))
            self.scope.assign(self._text(name), tuple(before + after for before in old for after in values))
        else:
            self.scope.assign(self._text(name), values)

    def _assignment_values(self, node: "Node") -> tuple[str, ...]:
        value, name = node.child_by_field_name("value"), node.child_by_field_name("name")
        if name is not None and name.type == "subscript":
            self._expander().run_substitutions(name)
        if value is None:
            return ("",)
        if value.type == "array":
            return (UNKNOWN,)
        expander = self._expander()
        first = expander.text(value)
        if not expander.doubtful:
            return (first,)
        values = []
        for choice in expander.several():
            expander.choice = choice
            values.append(expander.text(value))
        return tuple(dict.fromkeys(values))

    def _unset(self, node: "Node", stdin: Flow) -> Flow:
        for child in node.named_children:
            self.scope.assign(self._text(child), ("",))
        return NOTHING

    # Small parts.

    def _expander(self) -> Expander:
        return Expander(self.source, self.scope, self._substitute)

    def _substitute(self, node: "Node") -> str:
        """Walk a substitution in a copy of the scope and return its text where that is known."""
        flow = self._isolated(lambda: self._sequence(node, NOTHING))
        if flow.origin is Origin.TEXT:
            return flow.text.rstrip("\n")
        if flow.origin is Origin.NAMES and flow.names:
            return flow.names[0]
        return FETCHED if flow.origin in (Origin.FETCHED, Origin.DECODED) else UNKNOWN

    def _text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _evidence(self, node: "Node", argv: list[str] | tuple[str, ...]) -> Evidence:
        shown = tuple(word.replace(FETCHED, "…").replace(UNKNOWN, "…") for word in argv)
        if self.outer is not None:
            return Evidence(self.outer.text, self.outer.start, self.outer.end, shown)
        start = len(self.source[: node.start_byte].decode("utf-8", "replace"))
        text = self._text(node)
        return Evidence(text, start, start + len(text), shown)


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


Visitor = Callable[[Walk, "Node", Flow], Flow]

VISITORS: dict[str, Visitor] = {
    "program": Walk._sequence,
    "compound_statement": Walk._sequence,
    "do_group": Walk._sequence,
    "else_clause": Walk._sequence,
    "elif_clause": Walk._branches,
    "negated_command": Walk._sequence,
    "command_substitution": Walk._subshell,
    "process_substitution": Walk._subshell,
    "subshell": Walk._subshell,
    "pipeline": Walk._pipeline,
    "list": Walk._list,
    "if_statement": Walk._branches,
    "while_statement": Walk._branches,
    "c_style_for_statement": Walk._branches,
    "for_statement": Walk._for,
    "case_statement": Walk._case,
    "case_item": Walk._case_item,
    "function_definition": Walk._function,
    "redirected_statement": Walk._redirected,
    "command": Walk._command,
    "variable_assignment": Walk._assign,
    "variable_assignments": Walk._assign,
    "declaration_command": Walk._assign,
    "unset_command": Walk._unset,
    "ERROR": Walk._sequence,
}
