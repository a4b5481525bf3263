"""The walk over a script: passes every simple command in it to `Examiner.examine`, with the state at that point.

The walk follows the shell: sequences in order, pipelines in copies of the scope, branches joined afterwards, loops over
their values, functions where they are called (once with unknown arguments if never called).
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from constitution.effects import NO_EVIDENCE, UNKNOWN, Effect, Finding
from constitution.shell.scope import ANYTHING, NOTHING, Flow, Origin, Scope
from constitution.shell.syntax import overlooked, parse, substitutions
from constitution.shell.words import Expander
from constitution.tables import pattern
from constitution.tables.rows import is_known
from constitution.verdict import Evidence
from constitution.zones import FETCHED

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 24
"""The depth to which nested scripts and blocks are followed."""

MAX_COMMANDS = 2_000
"""The highest number of commands examined in one judgement; loops and functions can multiply them."""

MAX_CHARACTERS = 32_768
"""The highest number of characters in all nested scripts: a short text can repeat the same one many times."""


class Examiner(Protocol):
    """Receives each simple command as words, and returns its output."""

    def examine(self, argv: list[str], stdin: Flow, walk: "Walk") -> Flow:
        """Examine a command, given as words; return its output."""

    def redirect(self, operator: str, target: str, walk: "Walk") -> None:
        """Record a redirection with the word of its file."""

    def assigned(self, name: str, values: tuple[str, ...], walk: "Walk", *, exported: bool = False) -> None:
        """Record an assignment to a variable; `exported`: programs get it."""

    def wrote(self, target: str, flow: Flow, walk: "Walk") -> None:
        """Record output of a command into a file."""

    def content(self, file: str, walk: "Walk") -> Flow:
        """Return the content of a file."""

    def substitute_file(self, flow: Flow) -> str:
        """Record the output of a process substitution; return the name of its file."""

    def report(self, finding: Finding) -> None:
        """Record a finding about the script itself."""


NAME = pattern(r"[A-Za-z_]\w*")
SUBSTITUTION = pattern(r"\$\(|`")
TEXT = pattern(
    r"(\$\(|`)\s*(git (log|show|tag|config|notes)|gh|glab|ssh|head|tail|xclip|xsel|pbpaste|wl-paste)\b[^|]*$"
)
"""A substitution by text that others have written, such as a commit message, a line of a file, or the clipboard."""


PLAIN = re.compile(r"([A-Za-z./_][\w./+-]{0,99})(?: [\w./:=@%+,-]{1,200}){0,40}", re.ASCII)
"""A simple command without expansions and quotes."""
BLOCKS = frozenset("if then else elif fi for while until do done case esac select function in time coproc".split())  # noqa: SIM905
OF_THE_GRAMMAR = BLOCKS | frozenset("declare typeset export readonly local unset unsetenv test eval let".split())  # noqa: SIM905


class Budget:
    """Counts commands, depth and characters over all scripts of one judgement."""

    def __init__(self) -> None:
        self.commands = 0
        self.depth = 0
        self.characters = 0
        self.substituted: dict[int, Node] = {}  # followed substitutions, by their id, likewise
        self.called: dict[int, Node] = {}  # functions by the id of their body, valid while it is held


class Walk:
    """The walk over one script in one scope. Nested scripts get their own walks by `nested`."""

    def __init__(
        self,
        examiner: Examiner,
        scope: Scope,
        visitors: "Mapping[str, Visitor]",
        budget: Budget | None = None,
        outer: Evidence | None = None,
    ) -> None:
        self.examiner = examiner
        self.scope = scope
        self.visitors = visitors
        self.budget = budget or Budget()
        self.outer = outer
        self.evidence = outer or NO_EVIDENCE
        self.source = b""
        self.active: tuple[int, ...] = ()  # functions that are being walked
        self.reads_text = False  # a substitution has returned the content of a file
        self.texts_read = list[str]()  # the substitutions that have
        self.outputs: list[str] = []  # files that get the output of the present command
        self.redirects: dict[int, list[Node]] = {}  # redirections by command id, if the tree puts them on a list

    def run(self, text: str, stdin: Flow = NOTHING) -> Flow:
        """Walk a whole script and return its output."""
        if (match := PLAIN.fullmatch(text)) is not None and match[1] not in OF_THE_GRAMMAR:
            return self._plain(text, text.split(" "), stdin)
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
        if any(node.id not in self.budget.substituted for node in substitutions(script.root, script.source)):
            self.doubt("a substitution stands where none is expected")
        return flow

    def _plain(self, text: str, argv: list[str], stdin: Flow) -> Flow:
        """Examine one command of plain words, without a parser."""
        self.source = text.encode()
        outer = self.outer
        whole = (text, 0, len(text)) if outer is None else (outer.text, outer.start, outer.end)
        self.evidence = Evidence(*whole, tuple(argv))
        flow = self._counted(argv, stdin)
        self.scope.stay()
        self._uncalled()
        return flow

    def nested(self, text: str, stdin: Flow = NOTHING, *, arguments: tuple[str, ...] | None = None) -> Flow:
        """Walk a script in a word of this one; its evidence is the enclosing command."""
        self.budget.characters += len(text)
        if self.budget.depth >= MAX_DEPTH or self.budget.characters > MAX_CHARACTERS:
            self.doubt("scripts are nested too deep")
            return ANYTHING
        if UNKNOWN in text:
            effect = Effect.RUN_FETCHED_CODE if FETCHED in text else Effect.RUN_UNKNOWN_CODE
            self.report(effect, "run text that is not known in advance", "")
        self.budget.depth += 1
        scope = self.scope
        if arguments is not None:
            scope = scope.copy()
            scope.positional = arguments
        inner = Walk(self.examiner, scope, self.visitors, self.budget, self.evidence)
        inner.active = self.active
        flow = inner.run(text.replace(FETCHED, "$_UNKNOWN_").replace(UNKNOWN, "$_UNKNOWN_"), stdin)
        self.budget.depth -= 1
        return flow

    def report(self, effect: Effect, says: str, program: str = "the command", *, at: "Node | None" = None) -> None:
        """Report an effect of the script itself, at a node or at the present command."""
        self.examiner.report(
            Finding(effect, "", says, program, self.evidence if at is None else self.evidence_of(at, ()))
        )

    def doubt(self, why: str) -> None:
        """Report that this script cannot be read with certainty."""
        self.report(Effect.UNREADABLE, f"do something that cannot be read with certainty: {why}")

    def visit(self, node: "Node", stdin: Flow = NOTHING) -> Flow:
        """Walk one node with `stdin` as its input and return its output."""
        if self.budget.depth >= MAX_DEPTH:
            self.doubt("blocks are nested too deep")
            return ANYTHING
        self.budget.depth += 1
        kind = "redirected_statement" if node.id in self.redirects else node.type
        flow = self.visitors.get(kind, self.visitors[""])(self, node, stdin)
        self.budget.depth -= 1
        return flow

    def knows(self, node: "Node") -> bool:
        """Return whether this kind of node has a function."""
        return node.type in self.visitors

    def set(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable, and report the effects of its value on programs."""
        self.examiner.assigned(name, values, self)
        self.scope.assign(name, values)

    def isolated(self, act: "Callable[[], Flow]") -> Flow:
        """Call `act` in a copy of the scope."""
        before, self.scope = self.scope, self.scope.copy()
        try:
            return act()
        finally:
            self.scope = before

    def piped(self, stage: "Node", flow: Flow) -> Flow:
        """Walk a stage of a pipeline."""
        return self.isolated(lambda: self.visit(stage, flow))

    def perhaps(self, node: "Node", stdin: Flow) -> Flow:
        """Walk a node that may not run: afterwards either state is possible."""
        before = self.scope.copy()
        flow = self.visit(node, stdin)
        self.scope.join(before)
        return flow

    def _uncalled(self) -> None:
        """Walk the functions that are never called, with unknown arguments."""
        for name, (body, source) in list(self.scope.functions.items()):
            if body.id not in self.budget.called:
                self.call(name, body, source, None, NOTHING)

    def call(self, name: str, body: "Node", source: bytes, arguments: tuple[str, ...] | None, stdin: Flow) -> Flow:
        """Walk the body of a function with its arguments."""
        self.budget.called[body.id] = body
        outside, positional = (self.source, self.active), self.scope.positional
        self.source, self.active, self.scope.positional = source, (*self.active, body.id), arguments
        flow = self.visit(body, stdin)
        (self.source, self.active), self.scope.positional = outside, positional
        return flow

    def simple(self, node: "Node", argv: list[str], stdin: Flow) -> Flow:
        """Examine the words of a simple command."""
        if argv:
            self.evidence = self.evidence_of(node, argv)
        return self._counted(argv, stdin)

    def _counted(self, argv: list[str], stdin: Flow) -> Flow:
        self.budget.commands += 1
        if self.budget.commands == MAX_COMMANDS + 1:
            self.doubt("too many commands")
        if self.budget.commands > MAX_COMMANDS:
            return ANYTHING
        return self.invoke(argv, stdin) if argv else NOTHING

    def invoke(self, argv: list[str], stdin: Flow) -> Flow:
        """Examine words as a command in this scope: a function, an alias, or a program."""
        name = argv[0]
        if name in self.scope.functions:
            body, source = self.scope.functions[name]
            if body.id not in self.active:
                return self.call(name, body, source, tuple(argv[1:]), stdin)
            # `git() { command git push; }` starts the program of that name.
            return self.examiner.examine(argv, stdin, self) if is_known(name) else ANYTHING
        if name in self.scope.aliases:
            self.nested(" ".join([self.scope.aliases[name], *argv[1:]]), stdin)
        return self.examiner.examine(argv, stdin, self)

    def expander(self) -> Expander:
        """Return an expander of words in this scope."""
        return Expander(self.source, self.scope, self.substitute, self.substitute_file, self.calculate)

    def substitute(self, node: "Node") -> str:
        """Walk a substitution in a copy of the scope and return its text, if known."""
        self.budget.substituted[node.id] = node
        flow = self.visit(node)
        if flow.origin is Origin.TEXT:
            return flow.text.rstrip("\n")
        text = (
            flow.origin in (Origin.FILE, Origin.FETCHED, Origin.DECODED) or TEXT.match(self.text_of(node)) is not None
        )
        if text:
            self.reads_text = True
            self.texts_read.append(self.text_of(node))
        if flow.origin is Origin.ENDLESS:
            self.report(Effect.FILL, "fill the memory without end", at=node)
        if flow.origin in (Origin.NAMES, Origin.PROCESSES) and flow.names:
            return " ".join(flow.names)
        return FETCHED if flow.origin in (Origin.FETCHED, Origin.DECODED) else UNKNOWN

    def substitute_file(self, node: "Node") -> str:
        """Walk a process substitution and return the name of its file."""
        self.budget.substituted[node.id] = node
        stdin = ANYTHING if self.source[node.start_byte : node.start_byte + 1] == b">" else NOTHING
        return self.examiner.substitute_file(self.visit(node, stdin))

    def calculate(self, text: str) -> None:
        """Evaluate arithmetic: the shell evaluates the values of names in it, and runs substitutions in these."""
        reads_text = any(read in text for read in self.texts_read)
        if reads_text or (self.scope.texts and not self.scope.texts.isdisjoint(NAME.findall(text))):
            self.evaluate(UNKNOWN)

    def evaluate(self, name: str) -> None:
        """Evaluate a name of a variable: the shell runs substitutions in its subscript."""
        if UNKNOWN in name:
            self.report(Effect.RUN_UNKNOWN_CODE, "evaluate a text that is not known in advance")
        elif "[" in name and SUBSTITUTION.search(name):
            self.nested(': "{}"'.format(name.replace('"', '\\"')))

    def text_of(self, node: "Node") -> str:
        """Return the source text of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def evidence_of(self, node: "Node", argv: list[str] | tuple[str, ...]) -> Evidence:
        """Return the position of a node, with its argv."""
        shown = tuple(word.replace(FETCHED, "…").replace(UNKNOWN, "…") for word in argv)
        if self.outer is not None:
            return Evidence(self.outer.text, self.outer.start, self.outer.end, shown)
        start = len(self.source[: node.start_byte].decode("utf-8", "replace"))
        text = self.text_of(node)
        return Evidence(text, start, start + len(text), shown)


Visitor = Callable[[Walk, "Node", Flow], Flow]
"""Walks one kind of node and returns its output."""
