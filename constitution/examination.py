"""How one simple command becomes findings: unwrap it, look its program up, apply the rows that fit.

The forms that no table can say (shells, `find`, `xargs`, interpreters, `cd`) have functions in `special/`.
"""

import re
from collections.abc import Mapping

from constitution.assignments import assigned, given
from constitution.discoveries import Discoveries
from constitution.effects import Effect
from constitution.file_contents import FileContents
from constitution.handed import handed
from constitution.outward import outward
from constitution.rows import apply_rows
from constitution.shell.flow import ANYTHING, NOTHING, Flow, Origin
from constitution.shell.scope import Scope
from constitution.shell.walk import Walk
from constitution.special.fetched import builds, installs
from constitution.special.output import output_of
from constitution.special.shells import run_input
from constitution.special.table import SPECIAL
from constitution.strangers import stranger
from constitution.tables import is_a, names_of_kind, table_names
from constitution.tables.programs import (
    Wrapper,
    is_bare_shell,
    is_known,
    program_name,
    read_line,
    subcommands,
    unwrap,
    wrapper_of,
    wraps_behind_subcommands,
)
from constitution.verdict import Evidence
from constitution.zones import FETCHED, UNKNOWN, resolve

__all__ = ["Examination"]

GLOB = re.compile(r"[*?\[]")
ADDRESS = re.compile(r"(https?://|git\+|git://|github:|gitlab:|bitbucket:|gist:)")
RESERVED = frozenset(
    "{ } do done then fi if else elif while until for case esac function select in ! (( ))".split()  # noqa: SIM905
)
SPECIALS = frozenset([*SPECIAL, *names_of_kind("shell"), *(name for name in table_names("wrapper") if " " not in name)])
WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
TIMED = frozenset(["systemd-run"])  # what their options say counts besides the command that they run
TALKERS = frozenset(["nc", "ncat", "netcat", "telnet", "socat", "openssl", "curl"])


class Examination:
    """Examines the commands of one text. `resolved` maps absolute lexical paths to where links lead."""

    def __init__(self, scope: Scope, resolved: Mapping[str, str], executables: Mapping[str, str]) -> None:
        start, home = scope.cwd[0], scope.home
        self.resolved = {resolve(word, cwd=start, home=home): path for word, path in resolved.items()}
        self.executables = executables
        self.discoveries = Discoveries(start, home, self.resolved)
        self.contents = FileContents(self.discoveries)
        self.found, self.report, self.sent = self.discoveries.found, self.discoveries.report, self.discoveries.sent
        self.wrote, self.copied = self.contents.wrote, self.contents.copied
        self.run_written = self.contents.run
        self.findings, self.words = self.discoveries.findings, self.discoveries.words
        self.programs: dict[str, None] = {}
        self.invocations: list[Evidence] = []
        self.input = NOTHING  # of the command at hand

    def content(self, file: str, walk: Walk) -> Flow:
        """Return what comes out of a file."""
        return self.contents.of(file, walk)

    def substitute_file(self, flow: Flow, walk: Walk) -> str:
        """Return the name of the file that stands for what a process substitution prints."""
        return self.contents.substitute(flow)

    def redirect(self, operator: str, target: str, walk: Walk) -> None:
        """Take a redirection: `>` and its like write, `<` reads."""
        effect, before = Effect.WRITE if operator in WRITES else Effect.READ, self.discoveries.invoked_by(())
        self.found(effect, walk, program="the command", path=target)
        if operator == ">" and "*" in target and not target.startswith("/dev/"):
            self.found(Effect.DELETE, walk, program="the command", path=target, says="empty {path}")
        self.discoveries.invoking = before

    def assigned(self, name: str, values: tuple[str, ...], walk: Walk) -> None:
        """Take an assignment to a variable."""
        before = self.discoveries.invoked_by(())
        assigned(self, name, values, walk)
        self.discoveries.invoking = before

    def examine(self, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        """Examine a command whose words are known as far as possible; return what it prints."""
        within_a_script = walk.outer is not None or bool(walk.active)
        before = self.discoveries.invoked_by(() if within_a_script else self.discoveries.invoking or tuple(argv))
        flow = self._examined(argv, stdin, walk)
        self.discoveries.invoking = before
        return flow

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
            self.contents.started(word, walk)
            self.run_written(word, walk, lambda flow: self._started(name, flow, walk))
        wrapper = wrapper_of(name)
        if wrapper is not None:
            return self._wrapped(wrapper, name, argv, stdin, walk)
        self.input = stdin
        if stdin.origin is Origin.SHELL and name in TALKERS:
            self.found(Effect.GIVE_SHELL, walk, program=name, says="give another machine a shell")
        if stdin.names == ("tar",) and name in TALKERS and name != "curl" and "localhost" not in argv:
            self.found(Effect.LEAK, walk, program=name, says="send whole folders to another machine")
        special = SPECIAL.get(name) or (SPECIAL["sh"] if is_a(name, "shell") else None)
        if special is not None:
            special(self, name, argv, stdin, walk)
        self._look_up(name, argv, walk)
        self._behind_subcommands(name, argv, stdin, walk)
        return output_of(name, argv, stdin)

    def _started(self, name: str, flow: Flow, walk: Walk) -> None:
        """A file that the command writes is started by its name: the first line says what reads it."""
        first, _, text = flow.text.partition("\n")
        interpreter = first[2:].split()[:2] if first.startswith("#!") else []
        program = program_name(interpreter[-1], SPECIALS) if interpreter else "sh"
        if is_a(program, "shell") or program not in SPECIALS:
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
        special = SPECIAL.get(name)
        if special is not None:
            special(self, name, argv, stdin, walk)
        flow = self._behind(wrapper, name, argv[1:], stdin, walk)
        if flow is not None and name in TIMED:
            apply_rows(self, name, argv, walk)
        if flow is not None:
            return flow
        if is_known(name):
            self._look_up(name, argv, walk)
        self._behind_subcommands(name, argv, stdin, walk)
        return output_of(name, argv, stdin)

    def _behind_subcommands(self, name: str, argv: list[str], stdin: Flow, walk: Walk) -> None:
        for longer, words in subcommands(name, argv[1:]) if wraps_behind_subcommands(name) else ():
            if (wrapper := wrapper_of(longer)) is not None:
                self._behind(wrapper, longer, words, stdin, walk)

    def _behind(self, wrapper: Wrapper, name: str, words: list[str], stdin: Flow, walk: Walk) -> Flow | None:
        """Examine the command that a wrapper runs; return what it prints, or None where there is no command."""
        inner, scripts = unwrap(wrapper, words, _is_program)
        if wrapper.effect is None and any(map(ADDRESS.match, words[: len(words) - len(inner) + 1])):
            self.found(Effect.RUN_FETCHED_CODE, walk, program=name, says="run a program from an address")
        if wrapper.assignments:
            given(self, words[: len(words) - len(inner)], walk)
        if wrapper.effect is not None:
            if not (inner or scripts) and read_line(words, wrapper.takes, to_operand=True).flags & wrapper.looks:
                return ANYTHING
            self.found(wrapper.effect, walk, program=name, says=wrapper.says)
        if not (inner or scripts):
            return None
        inside = self.discoveries.inside
        self.discoveries.inside = inside or wrapper.inside
        flow = self._started_by(wrapper, inner, scripts, stdin, walk)
        self.discoveries.inside = inside
        return flow

    def _started_by(self, wrapper: Wrapper, inner: list[str], scripts: list[str], stdin: Flow, walk: Walk) -> Flow:
        flow = NOTHING
        for script in scripts:
            self._perhaps_typed(wrapper, script, stdin, walk)
            flow = walk.nested(script, stdin)
        if not inner or inner[0].startswith("-"):
            return flow
        self._perhaps_typed(wrapper, " ".join(inner), stdin, walk)
        if wrapper.joins:
            return walk.nested(" ".join(inner), stdin)
        if " " in inner[0]:
            return walk.nested(inner[0], stdin)
        return walk.invoke(inner, stdin) if wrapper.by_shell else self.examine(inner, stdin, walk)

    def _perhaps_typed(self, wrapper: Wrapper, command: str, stdin: Flow, walk: Walk) -> None:
        if wrapper.typed and stdin.origin is Origin.NOTHING and is_bare_shell(command):
            says = "start a shell in which anything can be typed"
            self.found(Effect.ESCAPE_SHELL, walk, program="the command", says=says)

    def _look_up(self, name: str, argv: list[str], walk: Walk) -> None:
        apply_rows(self, name, argv, walk)
        outward(self, name, argv, walk)
        builds(self, name, argv, walk)
        installs(self, name, argv, walk)
        handed(self, name, argv, walk)
        if not is_known(name) and name not in SPECIALS:
            stranger(self, name, argv, walk)


def _is_program(word: str) -> bool:
    """Tell whether a word, or the first of several in it, is the name of a program that is known."""
    name = program_name(word.partition(" ")[0], SPECIALS)
    return is_known(name) or name in SPECIALS
