"""The walk over a script: every simple command in order, with the state of the shell there, becomes effects.

What stands in command position is looked up: a function, a builtin or another program with code of its own
(`special_programs`), or a row of the table (`programs`). Three generic checks hold for every program: a word that looks
like a path outside is judged by its place, the value of an option like `--exec` is a script, and an address of another
machine is a connection.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product

from attrs import frozen

from constitution import programs
from constitution.places import (
    FETCHED,
    FOUND,
    UNKNOWN,
    Place,
    Places,
    absolute,
    place_of,
)
from constitution.programs import Clause, Line, Row, read_line
from constitution.reader import HARD, Function, Group, Loop, Node, Part, Pipe, Redirect, Simple, Unreadable, read
from constitution.rules import NOWHERE, Effect
from constitution.verdict import Evidence
from constitution.words import State, choices, fields, known, text_of

MOST_COMMANDS = 1_000
MOST_CHARACTERS = 65_536
MOST_NESTED = 40
MOST_DEPTH = 12
LEAVES = ("exit", "return", "break", "continue")
EXPORTS = ("export", "declare", "typeset", "local", "readonly")


@frozen
class Surroundings:
    """Facts beside the text: places, the folder where it starts, where links lead, and the files of program words."""

    places: Places
    cwd: str
    links: Mapping[str, str]
    executables: Mapping[str, str]


class Walk:
    """A walk over a script and all that it starts: its `effects`, and the `commands` that it runs at any depth."""

    def __init__(self, surroundings: Surroundings, special: "Mapping[str, Special]") -> None:
        self.places, self.links, self.special = surroundings.places, surroundings.links, special
        self.executables = surroundings.executables
        self.effects = list[Effect]()
        self.commands = list[Evidence]()
        self.state = State((surroundings.cwd,), self.places.home)
        self.span, self.depth, self.characters, self.nested = (0, 0), 0, 0, 0
        self.argv: list[str] = []
        self.title = ""
        self.text = ""
        self.is_over = False
        self.described: tuple[list[str], Evidence, bool] = (self.argv, Evidence(""), True)  # of the command at hand
        self.outputs: dict[int, str] = {}
        self.in_function = False

    # Text and nodes

    def script(self, text: str) -> str:
        """Walk a script; return its output."""
        self.characters += len(text)
        if self.depth > MOST_DEPTH or self.characters > MOST_CHARACTERS:
            self.add("unreadable", note="it is too deep, or too long")
            return UNKNOWN
        if not known(text):
            self.add("fetched_code" if FETCHED in text else "unknown_code")
            if not text.strip(UNKNOWN + FETCHED + " \n"):
                return UNKNOWN
            text = text.replace(UNKNOWN, "${_}").replace(FETCHED, "${_}")
        self.text = self.text or text
        if HARD.search(text):
            self.add("unreadable", note="it holds control or invisible characters")
            text = HARD.sub(" ", text)
        self.depth += 1
        try:
            return self.node(read(text), "")
        except Unreadable as reason:
            self.add("unreadable", note=str(reason))
            return UNKNOWN
        finally:
            self.depth -= 1

    def node(self, node: Node, stdin: str) -> str:
        """Walk a node; return what it prints."""
        match node:
            case Simple():
                return self.simple(node, stdin)
            case Pipe():
                return self.pipe(node, stdin)
            case Loop():
                return self.loop(node, stdin)
            case Function():
                return self.function(node)
            case Group():
                return self.group(node, stdin)

    def pipe(self, node: Pipe, stdin: str) -> str:
        """Walk the stages of a pipeline, each with the output of the one before."""
        for stage in node.stages:
            before, self.state = self.state, self.state.copy()
            stdin = self.node(stage, stdin)
            self.state = before
        return stdin

    def group(self, node: Group, stdin: str) -> str:
        """Walk commands in order."""
        before = self.state
        if node.apart:
            self.state = before.copy()
        stdin, targets = self.redirected(node.redirects, stdin)
        output = "".join([self.step(operator, step, stdin) for operator, step in node.steps])
        self.state.stay()
        for target in targets:
            self.state.files[target] = output
        if node.apart:
            self.state = before
        return output

    def step(self, operator: str, step: Node, stdin: str) -> str:
        """Walk one command of a group. Behind `||` and in a branch it may be left out."""
        if operator in (";", "&", "?"):
            self.state.stay()
        if operator not in ("||", "?"):
            return self.node(step, stdin)
        other = self.state.copy()
        if operator == "||":
            other.left = self.state.left
            self.state.stay()
        output = self.node(step, stdin)
        if operator == "||" and leaves(step):
            other.left = ()
            self.state = other
        else:
            self.state.join(other)
        return output

    def loop(self, node: Loop, stdin: str) -> str:
        """Walk the body of a loop, a second time if the first changes what the second would do."""
        words = [each for word in node.words for each in fields(word, self.state, {}, self.output)]
        if node.name:
            self.state.set(node.name, tuple(words) or (UNKNOWN,))
        other = self.state.copy()
        output = self.node(node.body, stdin)
        if self.state.cwds != other.cwds or self.state.variables != other.variables:
            self.state.join(other)
            output += self.node(node.body, stdin)
        self.state.join(other)
        return output

    def function(self, node: Function) -> str:
        """Judge the body of a function where it is defined; one that calls itself exhausts the machine."""
        self.state.functions.add(node.name)
        other, self.state = self.state, self.state.copy()
        started, outer, self.in_function = len(self.commands), self.in_function, True
        self.node(node.body, UNKNOWN)
        if any(command.argv[:1] == (node.name,) for command in self.commands[started:]):
            self.title = node.name
            self.add("exhaust")
        self.state, self.in_function = other, outer
        return ""

    def output(self, part: Part) -> str:
        """Return the output of a substitution, which runs once."""
        if id(part) not in self.outputs:
            before, self.state = self.state, self.state.copy()
            outer, self.in_function = self.in_function, True
            self.outputs[id(part)] = self.node(part.script, "") if part.script is not None else UNKNOWN
            self.state, self.in_function = before, outer
            if part.text == "<":  # the name of a file with the output
                name = f"/dev/fd/{len(self.outputs)}"
                self.state.files[name], self.outputs[id(part)] = self.outputs[id(part)], name
        return self.outputs[id(part)]

    # Simple commands

    def simple(self, node: Simple, stdin: str) -> str:
        """Walk a simple command, with all values that its variables may have."""
        if self.is_too_much():
            return UNKNOWN
        if self.depth == 1:
            self.span = node.start, node.end
        before, self.argv, self.title = self.argv, [], ""
        stdin, targets = self.redirected(node.redirects, stdin)
        output = ""
        for choice in choices([*node.words], self.state):
            self.assign(node)
            argv = [each for word in node.words for each in fields(word, self.state, choice, self.output)]
            if argv:
                output += self.invoke(argv, stdin)
        self.argv = before
        for target in targets:
            self.state.files[target] = output
        return "" if targets else output

    def is_too_much(self) -> bool:
        """Return whether the bounds of a walk are reached: nothing more is recorded, and the text is unreadable."""
        if len(self.commands) > MOST_COMMANDS or self.nested > MOST_NESTED:
            self.stop()
        return self.is_over

    def stop(self) -> None:
        """End the walk."""
        if not self.is_over:
            self.is_over = True
            self.effects.append(Effect("unreadable", note="it does too much"))

    def assign(self, node: Simple) -> None:
        """Set variables, and judge those that make other programs run."""
        for name, word in node.assigns:
            values = tuple(text_of(word, self.state, each, self.output) for each in choices([word], self.state))
            for value in values:
                if name != "IFS" or not node.words:
                    self.variable(name, value)
            if not node.words or (node.words[0].parts and node.words[0].parts[0].text in EXPORTS):
                self.state.set(name, values)

    def variable(self, name: str, value: str) -> None:
        """Judge the value of a variable that makes other programs run."""
        if name == "HISTFILE":
            self.add("hide")
        elif not programs.sign("loading_variables").match(name) or programs.sign("plain_values").fullmatch(value):
            return
        elif name == "PATH":
            old = self.state.values("PATH")
            for folder in value.split(":"):
                if folder not in ("$PATH", UNKNOWN, *old):
                    self.path("setting", folder or ".")
        elif name not in programs.words("searched_folders") or not self.all_inside(value):
            self.add("configure", note=name)

    def all_inside(self, folders: str) -> bool:
        """Return whether all folders of a list are in the workspace or installed."""
        return all(self.place(each).foreign == 0 for each in folders.split(":") if each and known(each))

    def redirected(self, redirects: Iterable[Redirect], stdin: str) -> tuple[str, list[str]]:
        """Open redirections: return the input, and the files that get the output."""
        targets = list[str]()
        for redirect in redirects:
            for choice in choices([redirect.word], self.state):
                if redirect.operator == "<<":
                    stdin = text_of(redirect.word, self.state, choice, self.output)
                    continue
                names = fields(redirect.word, self.state, choice, self.output) or [UNKNOWN]
                for name in filter(lambda each: not is_descriptor(redirect.operator, each), names):
                    if redirect.operator == "<":
                        self.path("read", name)
                        stdin = self.content(name)
                    else:
                        self.path("write", name)
                        targets.append(self.absolute(name))
        return stdin, targets

    def content(self, name: str) -> str:
        """Return what is known of the content of a file."""
        return self.state.files.get(self.absolute(name), UNKNOWN)

    def invoke(self, argv: list[str], stdin: str) -> str:
        """Judge a command, given as words; return what it prints."""
        self.commands.append(self.evidence(argv))
        if self.is_too_much():
            return UNKNOWN
        self.nested += 1
        before, self.argv = (self.argv, self.title), argv
        self.title = argv[0].rpartition("/")[2] or argv[0]
        try:
            return self.started(argv, stdin)
        finally:
            (self.argv, self.title), self.nested = before, self.nested - 1

    def started(self, argv: list[str], stdin: str) -> str:
        """Judge a command by what its first word is."""
        word = argv[0]
        if not known(word) or "*" in word or "?" in word:
            self.add("fetched_code" if FETCHED in word else "unknown_command")
            return UNKNOWN
        if word in self.state.functions:
            text = self.state.variables.get(f"alias {word}", ("",))[0].split()
            return self.invoke([*text, *argv[1:]], stdin) if text and text[0] != word else UNKNOWN
        name = self.program(word)
        if name is None:
            return self.run(word)
        if len(argv) == 2 and argv[1] in programs.ASKS_FOR_HELP and (programs.knows(name) or name in self.special):
            return UNKNOWN
        special = self.special.get(name)
        return special(self, name, argv[1:], stdin) if special else self.by_row(name, argv[1:], stdin)

    def program(self, word: str) -> str | None:
        """Return the name of a program for the table; None if it is a file that the table cannot know."""
        name = programs.program_name(word)
        if "/" not in word or word.startswith(programs.PROGRAM_FOLDERS):
            linked = programs.program_name(self.executables.get(word, word))
            return linked if programs.knows(linked) and not programs.knows(name) else name
        is_installed = programs.knows(name) and self.place(word).foreign == 0
        return name if is_installed and re.search(r"(^|/)(bin|\.bin)/", word) else None

    def run(self, word: str) -> str:
        """Judge a file that runs: one that the script wrote by its text."""
        if word == "-":
            self.add("unknown_code")
            return UNKNOWN
        if not word.startswith("/dev/fd/"):
            self.path("run", word)
        self.verbs(self.argv[1:4])
        content = self.content(word)
        if content == FETCHED:
            self.add("fetched_code")
        elif content != UNKNOWN:
            self.script(content)
        return UNKNOWN

    # Programs of the table

    def by_row(self, name: str, words: list[str], stdin: str) -> str:
        """Judge a command by its row of the table."""
        row = programs.row_of(name, words)
        if row is None:
            self.add("undescribed" if programs.knows(name) else "unknown_program")
            self.paths_named(words, frozenset())
            return FETCHED if stdin == FETCHED else UNKNOWN
        if row.has("wraps"):
            return self.wrapped(row, name, words, stdin)
        line = read_line(words, row.takes, long=programs.has_one_dash(name))
        self.title = " ".join((name, *line.operands[: row.depth]))
        line = line.without(row.depth)
        handled = self.clauses(row, line, words, stdin if known(stdin) else "")
        if not row.has("text"):
            names_operands = all(each.startswith("-") for clause in row.clauses for each in clause.targets)
            self.paths_named(words, handled, settings=names_operands or row.has("skip") is not None)
            if not programs.is_of_system(name):
                self.verbs(line.operands[:2])
            if not row.has("lose_data"):
                self.scripts_in(line)
        return self.printed(row, line, stdin)

    def wrapped(self, row: Row, name: str, words: list[str], stdin: str) -> str:
        """Judge the command behind the options of a program that starts it: `timeout 5 rm x`."""
        for each in read_line(words, row.takes).operands[: row.depth]:  # the subcommand
            words = words[words.index(each) + 1 :]
        line = read_line(words, row.takes, to_operand=True)
        self.clauses(row, line, words, "")
        argv = list(line.operands[row.skips :])
        while argv and (argv[0] in ("-", "--") or ASSIGNMENT.match(argv[0])):
            variable, equals, value = argv.pop(0).partition("=")
            if equals:
                self.variable(variable, value)
        if not argv:
            return UNKNOWN
        if len(argv) == 1 and re.search(r"[\s;|&]", argv[0]) and name in programs.words("takes_scripts"):
            return self.script(argv[0])
        return self.invoke(argv, stdin)

    def clauses(self, row: Row, line: Line, words: list[str], stdin: str) -> set[str]:
        """Carry out the clauses of a row; return the words that they are about."""
        handled = set[str]()
        skipped = line.operands[:1] if (skip := row.has("skip")) and self.applies(skip, line) else ()
        for clause in row.clauses:
            if not self.applies(clause, line, stdin):
                continue
            if clause.effect in programs.NO_EFFECTS:
                handled.update(skipped if clause.effect == "skip" else words if clause.effect == "text" else ())
            elif not clause.targets:
                self.add(clause.effect)
            else:
                targets = targets_of(clause.targets, line)
                handled.update(targets)
                self.concern(clause.effect, [each for each in targets if each not in skipped])
        return handled

    def concern(self, kind: str, targets: list[str]) -> None:
        """Record an effect on each of some words."""
        for target in targets:
            if kind == "run":
                self.run(target)
            elif kind == "delete" and target == UNKNOWN:  # it may begin with options: `rm $X`
                self.path("delete_tree", target)
            else:
                self.path(kind, target)

    def applies(self, clause: Clause, line: Line, stdin: str = "") -> bool:
        """Return whether the conditions of a clause hold for a command."""
        if clause.given and not line.given(clause.given):
            return False
        if line.flags & clause.unless or len(line.operands) < clause.least:
            return False
        if clause.first and not (line.operands and clause.first.search(line.operands[0])):
            return False
        if clause.effect == "network" and any(map(LOCAL.match, line.operands)):
            return False
        if clause.operand and not any(map(clause.operand.search, line.operands)):
            return False
        texts = [*line.operands, *(value for _, value in line.values), stdin]
        return clause.words is None or any(map(clause.words.search, texts))

    def scripts_in(self, line: Line) -> None:
        """Judge the values of options that are commands by their name."""
        for option, value in line.values:
            if option in programs.words("command_options") and value not in (".", "auto"):
                self.script(value)

    def verbs(self, words: Iterable[str]) -> None:
        """Judge what a program of the project is told to do."""
        for word, kind in product(words, ("publish", "reset")):
            if programs.sign(kind).fullmatch(word):
                before, self.title = self.title, f"{self.title} {word}"
                self.add(kind)
                self.title = before

    def paths_named(self, words: list[str], handled: "set[str] | frozenset[str]", *, settings: bool = False) -> None:
        """Judge words that look like paths or addresses elsewhere, wherever in a command they stand.

        `settings`: the program may take settings from them.
        """
        for before, word in zip(["", *words], words, strict=False):
            address = ADDRESS.search(word)
            if address and not LOCAL.match(address[1]) and not programs.is_of_system(self.title.partition(" ")[0]):
                self.add("network")
            if word not in handled and any(each in word for each in "/~."):
                for start, path in paths_in(word):
                    prints = programs.sign("output_option").search(f"{before} {word[:start]}") is not None
                    self.path_named(path, prints=prints, settings=settings)

    def path_named(self, path: str, *, prints: bool, settings: bool) -> None:
        """Judge a word that looks like a path: `prints`: behind an option that names an output."""
        place = self.place(path)
        if place.worth > 2 and prints:
            self.path("write", path)
        elif place.secret and place.name not in ("unknown", "partly", "private"):
            self.path("handle", path)
        elif settings and place.foreign and place.beyond and place.name != "unknown" and not prints:
            self.path("setting", path)

    def printed(self, row: Row, line: Line, stdin: str) -> str:
        """Return what a command prints, as far as it is known."""
        outs = [clause.targets for clause in row.clauses if clause.effect == "out" and self.applies(clause, line)]
        kind, *where = outs[0] if outs else ("",)
        if kind == "fetched":
            return FETCHED
        if kind == "word":
            return "1\n"
        if kind == "names":
            operands = targets_of((where[0] if where else "operands",), line) or ["."]
            return "".join(f"{each.rstrip('/') or '/'}/{FOUND}\n" for each in operands)
        if FETCHED in stdin:
            return FETCHED
        return stdin if kind == "same" and not [each for each in line.operands if each != "-"] else UNKNOWN

    # Effects

    def absolute(self, word: str) -> str:
        """Return the absolute path of a word, from the first folder in which the shell may be."""
        return absolute(word, self.state.cwds[0], self.state.home)

    def place(self, word: str) -> Place:
        """Return the place of a word as a path."""
        return place_of(self.absolute(word), self.places)

    def path(self, kind: str, word: str) -> None:
        """Record an effect on a path, for every folder in which the shell may be."""
        for cwd in self.state.cwds:
            path = absolute(word, cwd, self.state.home)
            target = self.target("follow" if word.endswith("/") else kind, path)
            self.add(kind, target, word if target == path else f"{word}, which leads to {target},")
            if word[:1] in ("/", "~"):
                break

    def target(self, kind: str, path: str) -> str:
        """Return where a path leads; what deletes a link concerns the link itself, without a `/` behind it."""
        if not self.links or (path in self.links and kind not in ("delete", "delete_tree", "link")):
            return self.links.get(path, path)
        folder = path.rpartition("/")[0]
        while folder and folder not in self.links:
            folder = folder.rpartition("/")[0]
        return self.links.get(folder, folder) + path[len(folder) :]

    def add(self, kind: str, path: str = "", note: str = "") -> None:
        """Record an effect of the command at hand."""
        if len(self.effects) > MOST_COMMANDS:
            self.stop()
        if self.is_over:
            return
        place = place_of(path, self.places) if path else NOWHERE
        if kind == "handle" and place.name == "private":
            return
        name = self.argv[0].rpartition("/")[2] if self.argv else ""
        program = name if path else self.title
        folder = self.state.cwds[0]
        if self.argv is not self.described[0]:
            self.described = self.argv, self.evidence(self.argv), known("".join(self.argv))
        _, evidence, is_known = self.described
        is_own = is_known and self.depth == 1 and self.nested == 1 and not self.in_function
        words = tuple(self.argv) if is_own else ()
        self.effects.append(Effect(kind, path, place, program, words, evidence, note, folder))

    def evidence(self, argv: Iterable[str]) -> Evidence:
        """Return a command at the place in the text where it is started; `…` marks unknown parts."""
        start, end = self.span
        words = tuple(word.replace(UNKNOWN, "…").replace(FETCHED, "…") for word in argv)
        return Evidence(self.text[start:end], start, end, words)


Special = Callable[[Walk, str, list[str], str], str]


def leaves(node: Node) -> bool:
    """Return whether a command leaves the script or the loop."""
    return isinstance(node, Simple) and bool(node.words) and node.words[0].parts[0].text in LEAVES


def is_descriptor(operator: str, name: str) -> bool:
    """Return whether a redirection goes to an open file: `2>&1`."""
    return operator in (">&", "<&") and (name.isdigit() or name == "-")


def targets_of(names: Iterable[str], line: Line) -> list[str]:
    """Return the words that a clause concerns."""
    found = list[str]()
    for name in names:
        if name.startswith("-"):
            found.extend(line.value_of(name))
        elif name == "here":
            found.append(".")
        else:
            found.extend(line.operands[OPERANDS.get(name, slice(None))])
    return found


def paths_in(word: str) -> Iterator[tuple[int, str]]:
    """Yield what looks like a path in a word, with where it begins."""
    for start in PATHLIKE.finditer(word):
        path = word[start.end() :]
        before = word[: start.end()]
        if not path.startswith("//") and "://" not in before + path[:2] and not re.search(r"\s", before):
            yield start.end(), path


OPERANDS = {"first": slice(1), "last": slice(-1, None), "but_last": slice(-1), "rest": slice(1, None)}
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
LOCAL = re.compile(r"^(\w+@)?(https?://)?(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(:\d+)?(/|$)")
ADDRESS = re.compile(r"(?:https?|ftps?|s3|gs|sftp|ssh|git|rsync|wss?|postgres(?:ql)?|mysql|redis|mongodb)://([^/\s]+)")
PATHLIKE = re.compile(r"(?:^|(?<=[=@,]))(?=/|~|\.\.?/|\.\.$|[\w.-]+/|\.?[\w-]*\.)")
