"""The tools `find` (S2) and `list_files` (S3): files whose paths match a glob, without those that git ignores."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO

from attrs import frozen

from agent.tools.definition import Tool, tool
from agent.tools.output import tell_lines
from agent.tools.patterns import matches
from agent.tools.schemas import Limits, Path
from agent.tools.workspace import Entry, Files, Folder
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MOST_CHARACTERS = 4096
Glob = Callable[[str], bool]

# Ours, since `wcmatch` goes back over what it has matched: eight times `**/a/` took it 44 seconds on 40 directories.


def make_glob(pattern: str, *, anywhere: bool = False, hidden: bool = True) -> Glob:
    """Return what tells whether a pattern means a path, relative and with / between its names.

    anywhere: a pattern without / is about names in any directory. hidden: wildcards mean names that begin with a dot;
    else these have to be named. Raises ToolError for a pattern that cannot be read or leaves its directory.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise ToolError(f"the pattern has {len(pattern)} characters; {_MOST_CHARACTERS} are the most")
    if pattern.startswith("/") or ".." in re.split(r"[/{},]", pattern):
        raise ToolError(f"the pattern {pattern[:80]!r} leaves its directory; give one relative to it, without ..")
    if "\0" in pattern or not pattern.strip("/"):
        raise ToolError(f"{pattern[:80]!r} is no pattern; give one such as *.py or src/**/*.py")
    expression = _expression(_NEEDLESS.sub("", pattern), anywhere=anywhere)
    named = hidden or re.search(r"(?:^|[/{,])\.(?!/)", pattern)
    try:
        matches(expression, "")
    except ValueError as error:
        raise ToolError(f"the pattern {pattern[:80]!r} cannot be read: {error}") from error
    return lambda path: (named or "/." not in f"/{path}") and matches(expression, _as_text(path))


def _as_text(path: str) -> str:
    return path.encode("utf-8", "replace").decode()


_NEEDLESS = re.compile(r"(?<![^/])\./|/(?=/)|/$")
_SIGNS = re.compile(
    r"\\(?P<escaped>.)|\[(?P<set>[!^]?\]?[^\]]*)\]|(?P<folders>(?<![^/{,])\*\*/)|(?P<all>(?<![^/{,])\*\*(?=[,}]|$))"
    r"|(?P<star>\*+)|(?P<any>\?)|(?P<brace>[{,}])|(?P<plain>.)",
    re.DOTALL,
)
_FOLDERS = "(?:[^/]+/)*"
_WILDCARDS = {"folders": _FOLDERS, "all": f"{_FOLDERS}[^/]+", "star": "[^/]*", "any": "[^/]"}


def _expression(pattern: str, *, anywhere: bool) -> str:
    """Return a pattern as an expression of RE2 for the whole path. Braces without their counterpart are characters."""
    parts: list[str] = []
    opened: list[list[int]] = []  # where each brace that is open stands, and the commas in it
    for sign in _SIGNS.finditer(pattern):
        if sign[0] == "{":
            opened.append([len(parts)])
        elif sign[0] == "," and opened:
            opened[-1].append(len(parts))
        elif sign[0] == "}" and opened:
            start, *commas = opened.pop()
            parts[start] = "(?:"
            for comma in commas:
                parts[comma] = "|"
            parts.append(")")
            continue
        parts.append(_sign(sign))
    return (_FOLDERS if anywhere and "/" not in pattern else "") + "".join(parts)


def _sign(sign: re.Match[str]) -> str:
    kind = sign.lastgroup or ""
    if kind != "set":
        return _WILDCARDS.get(kind) or re.escape(sign[kind])
    text = sign["set"]
    inside = re.sub(r"([\\\[\]^])", r"\\\1", text.lstrip("!^"))
    return f"[^/{inside}]" if text[0] in "!^" else f"[{inside.replace('/', '')}]"


@frozen
class Ignored:
    """The rules that hold in a directory: (its path from where a file stands, that file's rules), outer first."""

    layers: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()

    def below(self, name: str, rules: "GitIgnoreSpec | None" = None) -> "Ignored":
        """Return what holds in the directory `name`, which has `rules` of its own."""
        moved = tuple((f"{path}{name}/", own) for path, own in self.layers)
        return Ignored(moved if rules is None else (*moved, ("", rules)))

    def leaves_out(self, name: str, *, is_directory: bool) -> bool:
        """Tell whether an entry of the directory is left out: the innermost file that speaks about it decides."""
        if name == ".git":
            return True
        entry = f"{name}/" if is_directory else name
        said = (rules.check_file(path + entry).include for path, rules in reversed(self.layers))
        return next((include for include in said if include is not None), False)


NOTHING_IGNORED = Ignored()


def read_rules(content: bytes) -> "GitIgnoreSpec":
    """Return the rules of a `.gitignore` file; lines that cannot be read say nothing."""
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    rules = []
    for line in content.decode("utf-8", "replace").removeprefix("\ufeff").split("\n"):
        with suppress(GitIgnorePatternError):
            if (
                len(line) <= _MOST_CHARACTERS
                and (rule := GitIgnoreSpecPattern(line.removesuffix("\r"))).include is not None
            ):
                rules.append(rule)
    return GitIgnoreSpec(rules, backend="re2")  # in time linear in the name, whatever the rules


_MOST_DEPTH = 200
_RULES = ".gitignore"
_MOST_RULE_BYTES = 1 << 20


@frozen(eq=False)
class Found:
    """Something that is no directory, at `path` below the start. It can be opened until the walk goes on."""

    path: str
    is_file: bool
    folder: Folder
    name: str

    def open(self) -> BinaryIO:
        """Return it, open for reading. Raises PathRefused or OSError."""
        return self.folder.open(self.name)


def walk(files: Files, start: str, *, all_files: bool = False) -> Iterator[Found]:
    """Yield everything below `start` that is no directory, sorted by path.

    `.gitignore` files from the root down are heard, unless `all_files`. Raises PathRefused or OSError for a `start`
    that is no directory or may not be looked into.
    """
    ignored = NOTHING_IGNORED if all_files else _rules_above(files, start)
    with files.open_folder(start) as folder:
        yield from _below(folder, "", ignored, all_files)


def _below(folder: Folder, path: str, ignored: Ignored, all_files: bool) -> Iterator[Found]:
    if path.count("/") > _MOST_DEPTH:
        return
    for entry in sorted(folder.entries(), key=_order):
        if not all_files and ignored.leaves_out(entry.name, is_directory=entry.is_directory):
            continue
        if entry.is_directory:
            yield from _inside(folder, entry, path, ignored, all_files)
        else:
            yield Found(path + entry.name, entry.is_file, folder, entry.name)


def _inside(folder: Folder, entry: Entry, path: str, ignored: Ignored, all_files: bool) -> Iterator[Found]:
    with suppress(OSError, ToolError), folder.folder(entry.name) as inner:
        rules = None if all_files else _rules_of(inner)
        yield from _below(inner, f"{path}{entry.name}/", ignored.below(entry.name, rules), all_files)


def _order(entry: Entry) -> str:
    """Directories stand where their paths do: as if their names ended with a /."""
    return f"{entry.name}/" if entry.is_directory else entry.name


def _rules_above(files: Files, start: str) -> Ignored:
    """Return what holds in `start` by the files of the directories from the root to it, and by its own."""
    root, target = files.resolve("."), files.resolve(start)
    names = target[len(root) :].strip("/").split("/") if target.startswith(f"{root.rstrip('/')}/") else []
    base = root if names or target == root else target
    with files.open_folder(base) as folder:
        return _rules_down(folder, names, NOTHING_IGNORED.below("", _rules_of(folder)))


def _rules_down(folder: Folder, names: list[str], ignored: Ignored) -> Ignored:
    if not names:
        return ignored
    with folder.folder(names[0]) as inner:
        return _rules_down(inner, names[1:], ignored.below(names[0], _rules_of(inner)))


def _rules_of(folder: Folder) -> "GitIgnoreSpec | None":
    with suppress(OSError, ToolError), folder.open(_RULES) as file:
        return read_rules(file.read(_MOST_RULE_BYTES))
    return None


MOST_RESULTS = 1000


def make_find(files: Files) -> Tool:
    """Return the tool `find`."""

    @tool(category="read", parallel=True)
    def find(
        pattern: str,
        path: Annotated[str, Path("list")] = ".",
        limit: Annotated[int, Limits(minimum=1)] = MOST_RESULTS,
    ) -> ToolResult:
        """Find files by a glob pattern; you get their paths, relative to the directory that is searched.

        Hidden files are found; what .gitignore leaves out is not. You get at most 1000 paths and 50 KB, whichever
        comes first.

        Args:
            pattern: such as *.py (in any directory), src/**/*.py or **/*.{js,ts}
            path: the directory to search, relative or absolute
            limit: how many paths, at most
        """
        glob = make_glob(pattern, anywhere=True)
        return _tell((found.path for found in walk(files, path) if glob(found.path)), limit)

    return find


def make_list_files(files: Files) -> Tool:
    """Return the tool `list_files`, which keeps to the root of `files`."""

    @tool(category="read", parallel=True)
    def list_files(pattern: str = "**/*") -> ToolResult:
        """List the files of the workspace whose paths match a glob pattern.

        Hidden files are listed where the pattern names the dot.

        Args:
            pattern: such as *.py (directly in the workspace), **/*.py or src/**/*.{js,ts}
        """
        glob = make_glob(pattern, hidden=False)
        return _tell((found.path for found in walk(files, ".", all_files=True) if glob(found.path)), MOST_RESULTS)

    return list_files


def _tell(found: Iterator[str], limit: int) -> ToolResult:
    paths = list(islice(found, limit + 1))
    if len(paths) <= limit:
        return tell_lines(paths, empty="(no files match)")
    notice = f"the first {limit} files; use limit={2 * limit} for more, or a finer pattern"
    return tell_lines(paths[:limit], [notice], empty="", details={"resultLimitReached": limit})
