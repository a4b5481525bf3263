"""How one simple command becomes findings: unwrap it, look its program up, apply the rows that fit.

The forms that no table can say (shells, `find`, `xargs`, interpreters, `cd`) have functions in `special.py`.
"""

import re
from collections.abc import Callable, Mapping

from constitution.effects import Effect, Finding
from constitution.programs.options import read_line
from constitution.programs.program import Does, paths_of
from constitution.programs.table import is_known, program_name, rows_for
from constitution.shell.flow import ANYTHING, NOTHING, Flow, Origin
from constitution.shell.scope import Scope
from constitution.shell.walk import Walk
from constitution.special.later import scripts_of
from constitution.special.output import output_of
from constitution.special.shells import run_input
from constitution.special.table import SPECIAL
from constitution.variables import COMMANDS, FUNCTIONS, PRELOADS, PROMPTS
from constitution.verdict import Evidence
from constitution.wrappers import SHELLS, WRAPPERS, Wrapper, unwrap
from constitution.written import WrittenFiles
from constitution.zones import FETCHED, UNKNOWN, is_private, resolve, runs_later

__all__ = ["Examination"]

SUBSTITUTION = re.compile(r"\$\(|`")
SUBSCRIPT = re.compile(r"\[[^]]*(?:\$\(|`)")
"""A value that runs a command where it is taken for a number: the shell looks into the subscript of an array."""

GLOB = re.compile(r"[*?\[]")
RESERVED = frozenset(
    [
        "{",
        "}",
        "do",
        "done",
        "then",
        "fi",
        "if",
        "else",
        "elif",
        "while",
        "until",
        "for",
        "case",
        "esac",
        "function",
        "select",
        "in",
        "!",
        "((",
        "))",
    ]
)
SPECIALS = frozenset(SPECIAL) | SHELLS | frozenset(WRAPPERS)
WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})

ADDRESSED = frozenset({Effect.NETWORK, Effect.UPLOAD})  # what they name are addresses, not paths

TALKERS = frozenset(["nc", "ncat", "netcat", "telnet", "socat", "openssl", "curl"])

SHOWS = frozenset({Effect.SHOW_ENVIRONMENT, Effect.SHOW_SECRETS, Effect.TAKE_KEYS})

SAYS = {
    Effect.READ: "read {path}",
    Effect.LIST: "list {path}",
    Effect.WRITE: "write {path}",
    Effect.DELETE: "delete {path}",
    Effect.DELETE_TREE: "delete {path} recursively",
    Effect.EXECUTE: "run {path}",
    Effect.READ_TREE: "read everything in {path}",
    Effect.SEARCH_PATH: "look for programs in {path}",
    Effect.PRELOAD: "make programs load {path}",
    Effect.PERMISSIONS: "change the permissions of {path}",
    Effect.OPEN_TO_ALL: "open {path} to everybody",
    Effect.NETWORK: "reach {path} over the network",
    Effect.KILL: "end processes",
    Effect.RAW_COPY: "copy raw bytes",
    Effect.UNKNOWN_PROGRAM: "do something unknown with {path}",
    Effect.RUN_FETCHED_CODE: "run code that was downloaded or decoded",
    Effect.RUN_UNKNOWN_CODE: "run text that cannot be known",
}


class Examination:
    """Collects the findings of one command text. `resolved` maps absolute lexical paths to where links lead."""

    def __init__(self, scope: Scope, resolved: Mapping[str, str], executables: Mapping[str, str]) -> None:
        self.start = scope.cwd[0]
        self.home = scope.home
        self.resolved = {resolve(word, cwd=self.start, home=self.home): path for word, path in resolved.items()}
        self.executables = executables
        self.findings: dict[Finding, None] = {}
        self.programs: dict[str, None] = {}
        self.words: dict[str, None] = {}
        self.invocations: list[Evidence] = []
        self.written = WrittenFiles()
        self.substituted = 0
        self.input = NOTHING  # of the command at hand
        self.private: Evidence | None = None  # where something private is read
        self.sends: Evidence | None = None  # where something goes to another machine
        self.invoking: tuple[str, ...] = ()  # the command of the call itself that is being examined

    def report(self, finding: Finding) -> None:
        """Add a finding."""
        self.findings[finding] = None

    def found(self, effect: Effect, walk: Walk, *, program: str = "", path: str | None = None, says: str = "") -> None:
        """Add a finding about the command that `walk` is at; a path is a word, resolved in every possible folder."""
        says = says or SAYS.get(effect, "")
        self._watch(effect, path, walk)
        if path is None:
            said = says.replace("{path}", "something")
            self.report(Finding(effect, "", said, program, walk.evidence, self.invoking))
            return
        shown = says.replace("{path}", path.replace(UNKNOWN, "…") or "''")
        for cwd in walk.scope.cwd:
            absolute = resolve(path, cwd=cwd, home=self.home)
            self.words[absolute] = None
            where = self.resolved.get(absolute, absolute)
            self.report(Finding(effect, where, shown, program, walk.evidence, self.invoking))

    def _watch(self, effect: Effect, path: str | None, walk: Walk) -> None:
        """Remember whether something private is read, and whether something is sent: together they are a leak."""
        if effect in SHOWS or (effect is Effect.READ and path is not None and is_private(path)):
            self.private = self.private or walk.evidence
            self._sent(self.sends)
        elif effect is Effect.UPLOAD:
            self._sent(walk.evidence)

    def _sent(self, evidence: Evidence | None) -> None:
        self.sends = self.sends or evidence
        if self.private is not None and self.sends is not None:
            evidence, self.sends = self.sends, None
            says = "send what is private to another machine"
            self.report(Finding(Effect.LEAK, "", says, "the command", evidence))

    def wrote(self, target: str, flow: Flow, walk: Walk) -> None:
        """Take what a command printed into a file; what goes into a file that runs later is read as a script."""
        for path in self._absolute(target, walk):
            self.written.write(path, flow)
            if runs_later(path, self.home):
                self._beside_the_command(lambda path=path: self._placed(path, flow, walk))  # type: ignore[misc]

    def _placed(self, path: str, flow: Flow, walk: Walk) -> None:
        if flow.origin in (Origin.FETCHED, Origin.DECODED):
            self.found(Effect.RUN_FETCHED_CODE, walk, program="the command")
        for script in scripts_of(path, flow.text) if flow.text else ():
            walk.nested(script)

    def copied(self, source: str, target: str, walk: Walk) -> None:
        """Take it that a file gets the content of another."""
        for one, other in zip(self._absolute(source, walk), self._absolute(target, walk), strict=True):
            self.written.copy(one, other)

    def run_written(self, file: str, walk: Walk, read: Callable[[Flow], object]) -> None:
        """Have `read` what the command itself writes to a file that is run."""
        evidence = walk.evidence

        def later(flow: Flow) -> None:
            before, walk.evidence = walk.evidence, evidence
            read(flow)
            walk.evidence = before

        for path in self._absolute(file, walk):
            self.written.run(path, later)

    def content(self, file: str, walk: Walk) -> Flow:
        """Return what the command itself wrote to a file, if that is one known text; else only the file's name."""
        contents = [flow for path in self._absolute(file, walk) for flow in self.written.contents(path)]
        return contents[0] if len(contents) == 1 else Flow(Origin.FILE, names=(file,))

    def _absolute(self, word: str, walk: Walk) -> list[str]:
        paths = (resolve(word, cwd=cwd, home=self.home) for cwd in walk.scope.cwd)
        return [self.resolved.get(path, path) for path in paths]

    def substitute_file(self, flow: Flow, walk: Walk) -> str:
        """Return the name of the file that stands for what a process substitution prints."""
        self.substituted += 1
        path = f"/dev/fd/{63 - (self.substituted - 1) % 50}"
        self.written.write(path, flow)
        return path

    def redirect(self, operator: str, target: str, walk: Walk) -> None:
        """Take a redirection: `>` and its like write, `<` reads."""
        effect = Effect.WRITE if operator in WRITES else Effect.READ
        self._beside_the_command(lambda: self.found(effect, walk, program="the command", path=target))

    def assigned(self, name: str, values: tuple[str, ...], walk: Walk) -> None:
        """Take an assignment to a variable; some make other programs run what they hold."""
        self._beside_the_command(lambda: self._assigned(name, values, walk))

    def _assigned(self, name: str, values: tuple[str, ...], walk: Walk) -> None:
        for value in values:
            if name in PRELOADS:
                says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
                self.found(Effect.PRELOAD, walk, program="the command", path=value, says=says)
            elif name == "PATH":
                self._search_path(value, walk)
            elif script := _script_in(name, value):
                walk.nested(script)

    def _given(self, words: list[str], walk: Walk) -> None:
        """`env NAME=VALUE`: variables of the command behind it."""
        for word in words:
            name, equals, value = word.partition("=")
            if equals and not name.startswith("-"):
                self.assigned(name, (value,), walk)

    def _search_path(self, value: str, walk: Walk) -> None:
        """Programs are looked for in these folders first."""
        for folder in value.split(":")[:16]:
            if folder and not folder.startswith(UNKNOWN):
                self.found(Effect.SEARCH_PATH, walk, program="the command", path=folder)

    def _beside_the_command(self, act: Callable[[], None]) -> None:
        """Take what is found meanwhile as something that the command itself does not do."""
        before, self.invoking = self.invoking, ()
        try:
            act()
        finally:
            self.invoking = before

    def examine(self, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        """Examine a command whose words are known as far as possible; return what it prints."""
        before, within_a_script = self.invoking, walk.outer is not None or bool(walk.active)
        self.invoking = () if within_a_script else before or tuple(argv)
        try:
            return self._examined(argv, stdin, walk)
        finally:
            self.invoking = before

    def examine_program(self, argv: list[str], walk: Walk) -> None:
        """Examine a program that is started without a shell, with nothing in its input."""
        self.examine(argv, NOTHING, walk)

    def _examined(self, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        word, name = argv[0], program_name(argv[0], SPECIALS)
        if UNKNOWN in word or (GLOB.search(word) and word not in ("[", "[[")) or word in RESERVED or not word:
            return self._unknown_command(argv, walk)
        self.programs[word] = None
        self.invocations.append(Evidence(walk.evidence.text, walk.evidence.start, walk.evidence.end, tuple(argv)))
        name = self._name_behind(word, name)
        if "/" in word:
            self.found(Effect.EXECUTE, walk, program=name, path=word)
            self.run_written(word, walk, lambda flow: self._started(name, flow, walk))
        wrapper = WRAPPERS.get(name)
        if wrapper is not None:
            return self._wrapped(wrapper, name, argv, stdin, walk)
        self.input = stdin
        if stdin.origin is Origin.SHELL and name in TALKERS:
            self.found(Effect.GIVE_SHELL, walk, program=name, says="give another machine a shell")
        special = SPECIAL.get(name) or (SPECIAL["sh"] if name in SHELLS else None)
        if special is not None:
            special(self, name, argv, stdin, walk)
        self._table(name, argv, walk)
        return output_of(name, argv, stdin)

    def _started(self, name: str, flow: Flow, walk: Walk) -> None:
        """A file that the command writes is started by its name: the first line says what reads it."""
        first, _, text = flow.text.partition("\n")
        interpreter = first[2:].split()[:2] if first.startswith("#!") else []
        program = program_name(interpreter[-1], SPECIALS) if interpreter else "sh"
        if program in SHELLS or program not in SPECIALS:
            run_input(self, name, flow, walk, walk.nested)
        else:
            self.examine([program, "-"], Flow(flow.origin, text, flow.names), walk)

    def _name_behind(self, word: str, name: str) -> str:
        """A file of an unknown name may be a link to a program that is known."""
        if is_known(name) or name in SPECIALS:
            return name
        target = self.executables.get(word, "")
        behind = program_name(target, SPECIALS) if target else name
        return behind if is_known(behind) or behind in SPECIALS else name

    def _unknown_command(self, argv: list[str], walk: Walk) -> Flow:
        if FETCHED in argv[0]:
            self.found(Effect.RUN_FETCHED_CODE, walk, program="the command")
        self.found(Effect.UNKNOWN_COMMAND, walk, program="the command", says="run a program whose name cannot be known")
        if len(argv) > 1 and argv[0] in RESERVED:
            return self.examine(argv[1:], ANYTHING, walk)
        return ANYTHING

    def _wrapped(self, wrapper: Wrapper, name: str, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        inner, scripts = unwrap(wrapper, argv[1:])
        flow = NOTHING
        if wrapper.effect is None and any(map(ADDRESS.match, argv[1 : len(argv) - len(inner) + 1])):
            self.found(Effect.RUN_FETCHED_CODE, walk, program=name, says="run a program from an address")
        if wrapper.assignments:
            self._given(argv[1 : len(argv) - len(inner)], walk)
        if wrapper.effect is not None:
            if not (inner or scripts) and read_line(argv[1:], wrapper.takes, to_operand=True).flags & wrapper.looks:
                return ANYTHING
            self.found(wrapper.effect, walk, program=name, says=wrapper.says)
        for script in scripts:
            flow = walk.nested(script, stdin)
        if wrapper.joins and inner:
            return walk.nested(" ".join(inner), stdin)
        if inner:
            return walk.invoke(inner, stdin) if wrapper.by_shell else self.examine(inner, stdin, walk)
        if is_known(name):
            self._table(name, argv, walk)
        return flow if scripts else output_of(name, argv, stdin)

    def _table(self, name: str, argv: list[str], walk: Walk) -> None:
        if "--help" in argv[1:3] and len(argv) <= 3 and argv[-1] == "--help":
            return
        for row, words in rows_for(name, argv[1:]):
            line = read_line(words, row.takes, long_style=row.long_style)
            if line.flags & row.unless:
                continue
            for does in row.does:
                if does.applies(line):
                    self._does(does, name, paths_of(does.to, line), walk)
            for script in line.value_of(*row.runs) if row.runs else ():
                walk.nested(script.removeprefix("exec="))
        if not is_known(name) and name not in SPECIALS:
            self._stranger(name, argv, walk)

    def _does(self, does: Does, name: str, paths: tuple[str, ...], walk: Walk) -> None:
        if not does.to:
            self.found(does.effect, walk, program=name, says=does.says)
        for path in paths:
            if does.effect not in ADDRESSED:
                if path != "-":
                    self.found(does.effect, walk, program=name, path=path, says=does.says)
            elif not _is_local(path):
                if UNKNOWN in path or self.input.origin is not Origin.NOTHING:
                    self._sent(walk.evidence)
                says = does.says or f"reach {path.replace(UNKNOWN, '…')[:80]} over the network"
                self.found(does.effect, walk, program=name, says=says)

    def _stranger(self, name: str, argv: list[str], walk: Walk) -> None:
        """A literal program that no table knows: what it does with its arguments is unknown."""
        self.found(Effect.UNKNOWN_PROGRAM, walk, program=name, says="do something that no table knows")
        for word in argv[1:]:
            value = word.partition("=")[2] if word.startswith("-") or "=" in word else word
            if value and not value.startswith("-") and (_looks_like_path(value)):
                self.found(Effect.UNKNOWN_PROGRAM, walk, program=name, path=value)


def _looks_like_path(word: str) -> bool:
    return (word.startswith(("/", "~", "..", "./")) or "/" in word or word == ".") and "://" not in word


ADDRESS = re.compile(r"(https?://|git\+|git://|github:|gitlab:|bitbucket:|gist:)")
LOCAL = re.compile(
    r"^:\d*(/|$)|^(\w+://)?([^/@]*@)?(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0|[\w.-]+\.(localhost|local|test))(:\d+)?(/|$|\?)"
)


def _is_local(address: str) -> bool:
    return LOCAL.match(address) is not None


def _script_in(name: str, value: str) -> str:
    """Return the script that is run where a variable is used; none in most."""
    if name in COMMANDS:
        return value
    if name.startswith(FUNCTIONS):
        return f"f {value}"
    runs = SUBSTITUTION if name in PROMPTS else SUBSCRIPT
    return ': "{}"'.format(value.replace('"', '\\"')) if runs.search(value) else ""
