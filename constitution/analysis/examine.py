"""Findings of a simple command: unwraps it, looks its program up, and carries out the steps of every analysis."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice

from constitution.action import NO_HOME, NOTHING_FOUND, Action, Disk
from constitution.analysis import clients, output, search, shells, steps
from constitution.analysis.carried_files import assigned, carried, folders_of_git, given, repository
from constitution.analysis.clients import builds, installs
from constitution.analysis.external_effects import external_effects, undescribed
from constitution.analysis.file_flow import Files, scripts_of
from constitution.analysis.output import output_of
from constitution.analysis.program_rows import (
    addresses,
    apply_rows,
    found_in,
    outputs,
    secret_arguments,
    unknown_program,
)
from constitution.analysis.recipes import has_recipes, recipes, sources_in
from constitution.analysis.shells import run_input
from constitution.analysis.steps import (
    BARE_SHELL,
    Change,
    Command,
    Found,
    Placed,
    Script,
    Started,
    Step,
    Steps,
    What,
    as_script,
)
from constitution.effects import UNKNOWN, Effect, Finding
from constitution.rules import effects_called
from constitution.shell import begin
from constitution.shell.scope import ANYTHING, NOTHING, Flow, Origin, Scope
from constitution.shell.walk import Walk
from constitution.tables import forms, is_a, kinds_of, pattern, table_names, without_examples
from constitution.tables.rows import (
    Wrapper,
    has_subcommands,
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
from constitution.zones import FETCHED, FOUND, GLOB, is_private, is_within, resolve, runs_later

Analysis = Callable[[Command], Steps]

ADDRESS = pattern(r"(https?://|git\+|git://|github:|gitlab:|bitbucket:|gist:)")
RESERVED = frozenset(
    "{ } do done then fi if elif else while until for case esac function select in ! (( ))".split()  # noqa: SIM905
)
REPLACES = frozenset({">", ">|", "&>", ">&"})
WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
MATCHES = 1_000
"""The highest number of paths examined for a pattern."""

PHRASES = {Effect[name.upper()]: says for name, says in without_examples("rules")["phrases"].items()}


@cache
def _forms() -> frozenset[str]:
    """Return the names of programs with an analysis of their own, and of wrappers."""
    return frozenset([*forms(), *(name for name in table_names("wrapper") if " " not in name)])


@cache
def analysis_of(name: str) -> Analysis | None:
    """Return the analysis of a program that rows cannot describe; its module is loaded on first use."""
    if name not in forms():
        return None
    module, _, function = forms()[name].partition(".")
    analysis: Analysis = getattr(_module(module), function)
    return analysis


def _module(name: str) -> object:
    if name == "editors":
        from constitution.analysis import editors

        return editors
    if name == "interpreters":
        from constitution.analysis import interpreters

        return interpreters
    return {"clients": clients, "output": output, "search": search, "shells": shells}[name]


def fed(command: Command) -> Steps:
    """Yield the effects of piping a shell's output, or whole folders, into a program that sends it, or code."""
    if "sends_input" not in command.kinds:
        yield from found_in("program_text", command.stdin.text)
        return
    if command.stdin.origin is Origin.SHELL:
        yield Found(Effect.GIVE_SHELL, says="give another machine a shell")
    if command.stdin.names == ("tar",) and command.name != "curl" and "localhost" not in command.argv:
        yield Found(Effect.LEAK, says="send whole folders to another machine")


LOOKED_UP: tuple[tuple[Analysis, Callable[[frozenset[str], str], object]], ...] = (
    (fed, lambda kinds, _: not kinds.isdisjoint(("builder", "sends_input"))),
    (repository, lambda _, name: name == "git"),
    (apply_rows, lambda _, name: name in table_names("program") or has_subcommands(name)),
    (addresses, lambda kinds, _: "fetches" in kinds or kinds.isdisjoint(("harmless", "filters", "read_only"))),
    (outputs, lambda *_: True),
    (carried, lambda *_: True),
    (external_effects, lambda *_: True),
    (builds, lambda *_: True),
    (installs, lambda kinds, _: "installer" in kinds),
    (recipes, lambda _, name: has_recipes(name)),
    (secret_arguments, lambda kinds, name: "guards_arguments" not in kinds or name == "git"),
)
"""The analyses that examine every program, known or not, each with the kinds and names that it concerns."""


@lru_cache(maxsize=1024)
def looked_up(name: str) -> tuple[Analysis, ...]:
    """Return the analyses that examine a program beside its own."""
    return tuple(analysis for analysis, concerns in LOOKED_UP if concerns(kinds_of(name), name))


class Examination:
    """Examines the commands of one call. `resolved` maps absolute lexical paths to their real paths."""

    def __init__(
        self, scope: Scope, resolved: Mapping[str, str], executables: Mapping[str, str], disk: Disk = NOTHING_FOUND
    ) -> None:
        self.start, self.home = scope.cwd[0], scope.home
        words = resolved.items() if resolved else ()
        self.resolved = {resolve(word, cwd=self.start, home=self.home): path for word, path in words}
        self.executables = executables
        self.disk = disk
        self.findings: dict[Finding, None] = {}
        self.words: dict[str, None] = {}  # every path that was looked up
        self.programs: dict[str, None] = {}
        self.invocations: list[Evidence] = []
        self.because: dict[str, Effect] = {}  # facts on the disk that answered findings with these effects
        self._files = Files()
        self._made: set[str] = set()  # files that the script itself replaced or built
        self._told: dict[tuple[str, str], Effect] = {}  # descriptions of what programs do with paths
        self._links: dict[str, str] = {}  # links made by the script itself, with their targets
        self._invoking: tuple[str, ...] = ()  # the present command of the call itself
        self._folders: tuple[str, ...] = (".",)  # those in which the present command works
        self._production = False  # a variable selects production for programs
        self._placing = False  # the present script is one that runs at every start
        self._inside = False  # in a throw-away container: only effects outside of it count
        self._private: Evidence | None = None  # places of private data that were read
        self._sends: Evidence | None = None  # evidence of data sent to another machine

    # The interface of the walk

    def content(self, file: str, walk: Walk) -> Flow:
        """Return the content of a file."""
        return self._files.of(file, self._targets(file, walk))

    def substitute_file(self, flow: Flow) -> str:
        """Return the file name for the output of a process substitution."""
        return self._files.substitute(flow)

    def report(self, finding: Finding) -> None:
        """Add a finding."""
        self.findings[finding] = None

    def redirect(self, operator: str, target: str, walk: Walk) -> None:
        """Record a redirection: `>` and similar operators write, `<` reads."""
        todo = [Found(Effect.WRITE if operator in WRITES else Effect.READ, target)]
        if operator == ">" and "*" in target and FOUND not in target and not target.startswith("/dev/"):
            todo.append(Found(Effect.DELETE, target, says="empty {path}"))
        self._carry_out_of_no_command(todo, walk)
        if operator in REPLACES:
            self._made.update(self._targets(target, walk))

    def assigned(self, name: str, values: tuple[str, ...], walk: Walk, *, exported: bool = False) -> None:
        """Record an assignment to a variable; `exported`: programs get it."""
        self._carry_out_of_no_command(assigned(name, values, exported=exported), walk)

    def wrote(self, target: str, flow: Flow, walk: Walk) -> None:
        """Record output into a file; the content of a file that runs later is read as a script."""
        for path in self._targets(target, walk):
            self._files.write(path, flow)
            if flow.origin is Origin.ENDLESS and path.startswith("/dev/") and not path.startswith("/dev/shm"):
                self._found(Effect.EXHAUST, None, "keep a processor busy without end", "the command", walk)
            elif flow.origin is Origin.ENDLESS:
                self._found(Effect.FILL, None, "fill the disk without end", "the command", walk)
            if flow.text:
                self._carry_out_of_no_command(sources_in(path, flow), walk)
            if runs_later(path, self.home):
                self._carry_out_of_no_command([Placed(_in_started_file(path, flow))], walk)

    def examine(self, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        """Examine a command with partly known words; return its output."""
        within_a_script = walk.outer is not None or bool(walk.active)
        before = self._invoking, self._folders
        self._invoking = () if within_a_script else self._invoking or tuple(argv)
        self._folders = folders_of_git(argv[1:]) if program_name(argv[0]) == "git" else (".",)
        flow = self._examined(argv, stdin, walk)
        self._invoking, self._folders = before
        return flow

    # A command

    def _examined(self, argv: list[str], stdin: Flow, walk: Walk) -> Flow:
        word, name = argv[0], program_name(argv[0], _forms())
        if UNKNOWN in word or (GLOB.search(word) and word not in ("[", "[[")) or word in RESERVED or not word:
            return self._unknown_command(argv, walk)
        self.programs[word] = None
        said, words = walk.evidence, tuple(argv)
        self.invocations.append(said if said.argv == words else Evidence(said.text, said.start, said.end, words))
        name = self._name_behind(word, name)
        if "/" in word:
            self._carry_out(_started_by_path(word), name, walk)
        command = self._command(name, argv, stdin, walk)
        if (own := analysis_of(name)) is not None:
            self._carry_out(own(command), name, walk)
        if (wrapper := wrapper_of(name)) is not None:
            flow = self._behind(wrapper, name, argv[1:], stdin, walk)
            self._carry_out(apply_rows(command) if flow is not None and "has_rows" in command.kinds else (), name, walk)
            if flow is not None:
                return flow
        before = len(self.findings)
        for analysis in looked_up(name):
            self._carry_out(analysis(command), name, walk)
        if (doubts := list(undescribed(command))) and not self._is_told(before):
            self._carry_out(doubts, name, walk)
        if not is_known(name) and name not in _forms():
            self._carry_out(unknown_program(command), name, walk)
        self._behind_subcommands(name, argv, stdin, walk)
        return output_of(name, argv, stdin)

    def _is_told(self, before: int) -> bool:
        """Return whether later findings show what a program does beside its use of the files that it names."""
        return any(
            not finding.path and finding.effect not in effects_called("shows")
            for finding in islice(self.findings, before, None)
        )

    def _name_behind(self, word: str, name: str) -> str:
        """Return the known program that an unknown name links to, else the name."""
        if is_known(name) or name in _forms():
            return name
        target = self.executables.get(word, "")
        behind = program_name(target, _forms()) if target else name
        return behind if is_known(behind) or behind in _forms() else name

    def _unknown_command(self, argv: list[str], walk: Walk) -> Flow:
        todo = [Found(Effect.RUN_FETCHED_CODE)] if FETCHED in argv[0] else []
        todo.append(Found(Effect.UNKNOWN_COMMAND, says="run a program whose name is not known in advance"))
        self._carry_out(todo, "the command", walk)
        if len(argv) > 1 and argv[0] in RESERVED:
            return self.examine(argv[1:], ANYTHING, walk)
        return ANYTHING

    def _command(self, name: str, argv: list[str], stdin: Flow, walk: Walk) -> Command:
        return Command(
            name,
            kinds_of(name),
            argv,
            stdin,
            walk.evidence.text,
            walk.source,
            walk.scope,
            self.start,
            self.home,
            self._files,
            self.resolved,
            self._placing,
            self._production,
            self.disk,
        )

    # Programs that run another one

    def _behind_subcommands(self, name: str, argv: list[str], stdin: Flow, walk: Walk) -> None:
        for longer, words in subcommands(name, argv[1:]) if wraps_behind_subcommands(name) else ():
            if (wrapper := wrapper_of(longer)) is not None:
                self._behind(wrapper, longer, words, stdin, walk)

    def _behind(self, wrapper: Wrapper, name: str, words: list[str], stdin: Flow, walk: Walk) -> Flow | None:
        """Examine the command that a wrapper runs; return its output, or None without a command."""
        inner, scripts = unwrap(wrapper, words, _is_program)
        if wrapper.effect is None and any(map(ADDRESS.match, words[: len(words) - len(inner) + 1])):
            self._carry_out([Found(Effect.RUN_FETCHED_CODE, says="run a program from an address")], name, walk)
        own = words[: len(words) - len(inner)]
        if wrapper.assignments:
            self._carry_out(given(own), name, walk)
        if inner or scripts:
            self._carry_out_own(wrapper, self._command(name, [name, *own, *inner[:1]], stdin, walk), bool(inner), walk)
        if wrapper.effect is not None:
            if not (inner or scripts) and read_line(words, wrapper.takes, to_operand=True).flags & wrapper.looks:
                return ANYTHING
            self._carry_out([Found(wrapper.effect, says=wrapper.says)], name, walk)
        if not (inner or scripts):
            return None
        before, self._inside = self._inside, self._inside or wrapper.inside
        folders = read_line(own, wrapper.takes).value_of(*wrapper.moves) if wrapper.moves else ()
        flow = self._started_by(wrapper, inner, scripts, stdin, walk, folders)
        self._inside = before
        return flow

    def _carry_out_own(self, wrapper: Wrapper, command: Command, followed: bool, walk: Walk) -> None:
        """Carry out the effects of a wrapper's options."""
        for analysis in (apply_rows, carried, outputs):
            self._carry_out(analysis(command), command.name, walk)
        own = command.with_argv(command.argv[:-1]) if followed else command
        if not wrapper.inside:
            self._carry_out(secret_arguments(own), command.name, walk)

    def _started_by(
        self,
        wrapper: Wrapper,
        inner: list[str],
        scripts: list[str],
        stdin: Flow,
        walk: Walk,
        folders: tuple[str, ...] = (),
    ) -> Flow:
        flow = NOTHING
        for script in scripts:
            self._perhaps_typed(wrapper, script, stdin, walk)
            flow = walk.nested(script, stdin)
        if not inner or inner[0].startswith("-"):
            return flow
        self._perhaps_typed(wrapper, " ".join(inner), stdin, walk)
        if wrapper.joins and any(" " in word for word in inner[1:]):
            self.examine(inner, stdin, walk)  # some do not join with an option: `watch -x sh -c 'rm x'`
        if wrapper.joins or " " in inner[0]:
            return walk.nested(" ".join(inner) if wrapper.joins else inner[0], stdin)
        if wrapper.by_shell:
            return walk.invoke(inner, stdin)
        before = walk.scope.copy()  # a `cd` in another process has no effect here
        for folder in folders:
            self.examine(["cd", folder], NOTHING, walk)
        flow = self.examine(inner, stdin, walk)
        walk.scope.join(before)
        return flow

    def _perhaps_typed(self, wrapper: Wrapper, command: str, stdin: Flow, walk: Walk) -> None:
        by_path = command.startswith("/") and not wrapper.inside and not is_a(wrapper.names[0].split()[0], "container")
        if (wrapper.typed or by_path) and stdin.origin is Origin.NOTHING and is_bare_shell(command):
            self._carry_out([Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)], "the command", walk)

    # Steps

    def _carry_out_of_no_command(self, todo: Iterable[Step], walk: Walk) -> None:
        """Carry out the steps of redirections and variables, which no grant for a command covers."""
        before, self._invoking = self._invoking, ()
        self._carry_out(todo, "the command", walk)
        self._invoking = before

    def _carry_out(self, todo: Iterable[Step], program: str, walk: Walk) -> None:
        """Carry out the steps of a program in order, at the position of `walk`."""
        for step in todo:
            if isinstance(step, Found):  # nearly every step is one
                effect, path, says, other = step
                self._found(effect, path, says, other or program, walk)
                continue
            match step:
                case Script(text, stdin, arguments):
                    walk.nested(text, stdin, arguments=arguments)
                case Started(argv, stdin, by_shell):
                    (walk.invoke(argv, stdin) if by_shell else self.examine(argv, stdin, walk))
                case Placed(placed):
                    before, self._placing = self._placing, True
                    self._carry_out(placed, program, walk)
                    self._placing = before
                case steps.Runs(file, read):
                    self._run_written(file, read, program, walk)
                case steps.Because(told, effect):
                    self.because[f"{program} would {told}"] = effect
                case Change(What.SENT):
                    self._sent(walk.evidence)
                case _:
                    self._about_files(step, walk)

    def _about_files(self, step: Step, walk: Walk) -> None:
        match step:
            case Change(What.BEGUN, (file,)):
                if self._files.is_fetched(self._targets(file, walk)):
                    self._found(Effect.RUN_FETCHED_CODE, None, "", "the command", walk)
            case steps.Wrote(file, flow):
                self.wrote(file, flow, walk)
            case Change(What.COPIED, (source, target)):
                for one, other in zip(self._targets(source, walk), self._targets(target, walk), strict=True):
                    self._files.copy(one, other)
                    self._made.add(other)
            case Change(What.LINKED, (target, link)):
                self._links.update(zip(self._targets(link, walk), self._targets(target, walk), strict=True))
            case Change(What.FETCHED, (folder,)):
                self._files.fetched.extend(self._targets(folder, walk))
            case Change(What.REMOTE, (name, address)):
                self._files.remotes[name] = address
            case _:
                self._about_the_shell(step, walk)

    def _about_the_shell(self, step: Step, walk: Walk) -> None:
        match step:
            case steps.Set(name, values, exported, text):
                self.assigned(name, values, walk, exported=exported)
                if not exported:
                    walk.scope.assign(name, values)
                if text:
                    walk.scope.texts |= {name}
            case Change(What.PRODUCTION):
                self._production = True
            case Change(What.STOPS):
                walk.scope.stops = True
            case Change(What.MOVED, folders):
                found = (self._behind_links(self.resolved.get(folder, folder)) for folder in folders)
                walk.scope.move(tuple(dict.fromkeys(found)))
                if self._are_there(folders):
                    walk.scope.left = ()
                self.words.update(dict.fromkeys(walk.scope.cwd))
            case Change(What.ARGUMENTS, values):
                walk.scope.positional = values
            case Change(What.ALIAS, (name, text)):
                walk.nested(text)
                walk.scope.aliases[name] = text

    def _run_written(self, file: str, read: Callable[[Flow], Steps], program: str, walk: Walk) -> None:
        """Read the content that the script itself writes to a file that it runs, before or after."""
        evidence = walk.evidence

        def reader(flow: Flow) -> None:
            before, walk.evidence = walk.evidence, evidence
            self._carry_out(read(flow), program, walk)
            walk.evidence = before

        for path in self._targets(file, walk):
            self._files.run(path, reader)
            if self._files.recursive:
                self._files.recursive = False
                self._found(Effect.RISKY_CODE, None, "start itself again and again", "the command", walk)

    # Findings

    def _found(self, effect: Effect, path: str | None, says: str, program: str, walk: Walk) -> None:
        """Add a finding about the command at `walk`; a path is a word, resolved in every possible folder."""
        if self._inside and effect not in effects_called("gets_out"):
            return
        many = effect is Effect.DELETE and path and "*" in path  # `~/*`, or the results of a search
        if many and path and not any(is_within(absolute, self.start) for absolute in self._absolute(path, walk)):
            effect, says = Effect.DELETE_TREE, "delete {path}"
        says = says or PHRASES.get(effect, "")
        if path is None:
            self._watch(effect, effect in effects_called("shows"), walk)
            said = says.replace("{path}", "something")
            for repository in self._repositories(walk) if effect in effects_called("of_repositories") else ("",):
                self.report(Finding(effect, "", said, program, walk.evidence, self._invoking, repository))
            return
        places = self._absolute(path, walk)
        shows = effect in effects_called("shows") or (
            effect in effects_called("reads") and self._is_private(path, places)
        )
        self._watch(effect, shows, walk)
        for absolute in places:
            self.words[absolute] = None
            self._found_at(effect, absolute, path, says, program, walk)

    def _found_at(self, effect: Effect, absolute: str, path: str, says: str, program: str, walk: Walk) -> None:
        """Add a finding about one place that a path may name."""
        shown = _shown(says, path)
        where = self._place_of(effect, absolute, path, program)
        told = self._unless_told(effect, where, program)
        if told is None:
            return
        self.report(Finding(told, where, shown, program, walk.evidence, self._invoking))
        self._of_disk(effect, where, says, program, walk)
        if self._placing and effect in (Effect.EXECUTE, Effect.SEARCH_PATH):
            says = shown.replace("run ", "have ") + " run at every start" if effect is Effect.EXECUTE else shown
            self.report(Finding(Effect.PERSIST, where, says, program, walk.evidence, self._invoking))

    def _place_of(self, effect: Effect, absolute: str, path: str, program: str) -> str:
        """Return the real path; "" for a file that the script itself made and now runs."""
        where = self._followed(absolute)
        deletes = effect in effects_called("deletes") and not path.endswith("/")
        alone = deletes or program == "ln"  # which deletes, or makes, the link and not its target
        if effect is Effect.READ_TREE and where == "/":
            where = self.home
        if self._links and not (alone and where in self._links):
            where = self._behind_links(where)
        if effect is Effect.WRITE and is_a(program, "builder"):
            self._made.add(where)
        known = effect in (Effect.EXECUTE, Effect.CARRIED) and where in self._made and not self._placing
        return "" if known else where

    def _followed(self, path: str) -> str:
        """Return a path with links followed; of a pattern, those of its folder."""
        if path in self.resolved or "*" not in path:
            return self.resolved.get(path, path)
        folder = path.partition("*")[0].rpartition("/")[0]
        self.words[folder] = None
        return self.resolved.get(folder, folder) + path[len(folder) :]

    def _unless_told(self, effect: Effect, where: str, program: str) -> Effect | None:
        """Return the effect; None for a file argument of a program whose effect on it is reported otherwise."""
        if effect is not Effect.HANDLE:
            self._told[where, program] = effect
            return effect
        told = self._told.get((where, program))
        if told in (Effect.READ, Effect.WRITE, *effects_called("deletes")):
            return None
        return Effect.HANDLE if told is None else Effect.MENTION

    def _are_there(self, folders: tuple[str, ...]) -> bool:
        """Return whether folders are on the disk, and the script has not deleted anything yet: `cd` cannot fail."""
        removed = any(finding.effect in effects_called("deletes") for finding in self.findings)
        return not removed and all(folder in self.disk.folders for folder in folders)

    def _of_disk(self, effect: Effect, where: str, says: str, program: str, walk: Walk) -> None:
        """Add findings by facts on the disk: the matches of a pattern, other names of a file."""
        for match in self.disk.matches.get(where, "").split("\0")[:MATCHES] if GLOB.search(where) else ():
            behind = self.resolved.get(match, match)
            if match and (behind != match or is_private(match) or "/." in match):
                self.report(Finding(effect, behind, says.replace("{path}", match), program, walk.evidence))
        if where in self.disk.linked and effect in (Effect.WRITE, Effect.PERMISSIONS):
            said = says.replace("{path}", f"{where}, which is the same file as another elsewhere")
            self.report(Finding(effect, UNKNOWN, said, program, walk.evidence))

    def _repositories(self, walk: Walk) -> Iterator[str]:
        """Yield the repositories that the present command may work in, as far as the caller has found them."""
        for folder in self._folders:
            yield from self._targets(f"{folder}/.git", walk)

    def _absolute(self, word: str, walk: Walk) -> list[str]:
        """Return the paths that a word may name, before links are followed."""
        return [resolve(word, cwd=cwd, home=self.home) for cwd in walk.scope.cwd]

    def _behind_links(self, path: str) -> str:
        """Return a path with the links followed that the script itself makes."""
        for link, target in self._links.items():
            if is_within(path, link):
                return UNKNOWN if UNKNOWN in target else target + path[len(link) :]
        return path

    def _targets(self, word: str, walk: Walk) -> list[str]:
        return [self.resolved.get(path, path) for path in self._absolute(word, walk)]

    def _sent(self, evidence: Evidence | None) -> None:
        """Record that data are sent; with private data read anywhere in the text it is exfiltration."""
        self._sends = self._sends or evidence
        if self._private is not None and self._sends is not None:
            evidence, self._sends = self._sends, None
            says = "send private data to another machine"
            self.report(Finding(Effect.LEAK, "", says, "the command", evidence))

    def _watch(self, effect: Effect, shows: bool, walk: Walk) -> None:
        """Record reads of private data and uploads: together they are exfiltration."""
        if shows:
            self._private = self._private or walk.evidence
            self._sent(self._sends)
        elif effect is Effect.UPLOAD:
            self._sent(walk.evidence)

    def _is_private(self, path: str, places: list[str]) -> bool:
        """Return whether a read path is a secret, a whole home folder, or one of its hidden folders."""
        if is_private(path):
            return True
        return any(
            is_within(self.home, absolute)
            or absolute.startswith((f"{self.home}/.", "/root", "/etc/s", "/home/*", "/Users/*"))
            for absolute in places
            if not is_within(absolute, self.start)
        )


def examined(action: Action) -> Examination:
    """Examine an action: its command, argv, paths and URLs."""
    scope = Scope((action.start,), action.home or NO_HOME)
    examination = Examination(scope, action.resolved, action.executables, action.disk)
    walk = begin(examination, scope)
    try:
        if action.command is not None:
            walk.run(action.command)
        if action.argv:
            walk.evidence = Evidence(" ".join(action.argv)[:200], argv=action.argv)
            examination.examine(list(action.argv), NOTHING, walk)
    except RecursionError:
        examination.report(
            Finding(Effect.UNREADABLE, says="run code that is nested too deep to read", program="the command")
        )
    for use in action.paths:
        if use.access == "read" and action.outputs and is_within(use.resolved, action.outputs):
            continue  # a long output of a command of this run
        says = f"{use.access} {use.given}"
        examination.report(Finding(Effect[use.access.upper()], use.resolved, says, action.tool, Evidence(use.given)))
    for url in action.urls:
        says = f"reach {url[:80]} over the network"
        examination.report(Finding(Effect.NETWORK, "", says, action.tool, Evidence(url[:200])))
    return examination


def _shown(says: str, path: str) -> str:
    """Return the description with the path in it; of an unknown path, with its known folder."""
    if UNKNOWN not in path and FOUND not in path:
        return says.replace("{path}", path or "''")
    folder = FOLDER.match(path)
    said = f"a path{f' in {folder[0]}' if folder else ''} that is not known before it runs"
    if UNKNOWN not in path:
        said = f"files in {path.partition(FOUND)[0].rstrip('/') or '/'}"
    return says.replace("delete {path} recursively", "recursively delete {path}").replace("{path}", said)


FOLDER = pattern(r"/(?=[^/\0]*\0)|[^\0]*[^/\0](?=/+[^/\0]*\0)")
"""Matches the known folder in front of the unknown part of a path."""


def _is_program(word: str) -> bool:
    name = program_name(word.partition(" ")[0], _forms())
    return is_known(name) or name in _forms()


def _in_started_file(path: str, flow: Flow) -> tuple[Step, ...]:
    fetched = [Found(Effect.RUN_FETCHED_CODE)] if flow.origin in (Origin.FETCHED, Origin.DECODED) else []
    return (*fetched, *(Script(script) for script in (scripts_of(path, flow.text) if flow.text else ())))


def _started_by_path(word: str) -> Steps:
    """A file is started by its path; the first line of its known content names its interpreter."""
    yield Found(Effect.EXECUTE, word)
    yield Change(What.BEGUN, (word,))
    yield steps.Runs(word, _started_content)


def _started_content(flow: Flow) -> Steps:
    first, _, text = flow.text.partition("\n")
    interpreter = first[2:].split()[:2] if first.startswith("#!") else []
    program = program_name(interpreter[-1], _forms()) if interpreter else "sh"
    if is_a(program, "shell") or program not in _forms():
        yield from run_input(flow, as_script)
    else:
        yield Started([program, "-"], Flow(flow.origin, text, flow.names))
