"""The tools `find` (S2) and `list_files` (S3): files whose paths match a glob, without those that git ignores."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO

from attrs import frozen

from agent.tools.definition import Tool, tool
from agent.tools.output import cut_head, tell_cut
from agent.tools.patterns import TextPattern
from agent.tools.schemas import Limits, Path
from agent.tools.workspace import Entry, Files, Folder
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_MOST_ALTERNATIVES = 256
_MOST_CHARACTERS = 4096


# Ours, since `wcmatch` goes back over what it has matched: eight times `**/a/` took it 44 seconds on 40 directories.


@frozen
class Glob:
    """A pattern that was read, as an expression of RE2 for the whole path."""

    expression: TextPattern

    def matches(self, path: str) -> bool:
        """Tell whether the pattern means `path`, relative and with / between its names."""
        return self.expression.matches(path.encode("utf-8", "replace").decode())


def make_glob(pattern: str, *, anywhere: bool = False, hidden: bool = True) -> Glob:
    """Return a pattern. Raises ToolError for one that cannot be read or leaves its directory.

    anywhere: a pattern without / is about names in any directory. hidden: wildcards mean names that begin with a dot.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise ToolError(f"the pattern has {len(pattern)} characters; {_MOST_CHARACTERS} are the most")
    if pattern.startswith("/") or ".." in re.split(r"[/{},]", pattern):
        raise ToolError(f"the pattern {pattern[:80]!r} leaves its directory; give one relative to it, without ..")
    if "\0" in pattern or not pattern.strip("/"):
        raise ToolError(f"{pattern[:80]!r} is no pattern; give one such as *.py or src/**/*.py")
    alternatives = "|".join(_expression(each, anywhere=anywhere, hidden=hidden) for each in _expand(pattern))
    try:
        return Glob(TextPattern(alternatives))
    except ValueError as error:
        raise ToolError(f"the pattern {pattern[:80]!r} cannot be read: {error}") from error


def _expand(pattern: str) -> list[str]:
    """Return the alternatives that braces make of a pattern."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > _MOST_ALTERNATIVES:
            raise ToolError(f"the pattern has more than {_MOST_ALTERNATIVES} alternatives")
        first = waiting.pop()
        found = _innermost_braces(first)
        if found is None:
            done.append(first)
        else:
            start, end = found
            waiting += [first[:start] + choice + first[end + 1 :] for choice in first[start + 1 : end].split(",")]
    return done[::-1]


def _innermost_braces(pattern: str) -> tuple[int, int] | None:
    """Return where the first } and its { stand; braces in a set or after a backslash are characters."""
    opened: list[int] = []
    for position, sign in _signs(pattern):
        if sign == "{":
            opened.append(position)
        elif sign == "}" and opened:
            return opened[-1], position
    return None


def _signs(pattern: str) -> Iterator[tuple[int, str]]:
    """Yield the characters that mean something: not those after a backslash or in a set."""
    position = 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "[" and (end := pattern.find("]", position + 2)) != -1:
            position = end
        elif sign == "\\":
            position += 1
        else:
            yield position, sign
        position += 1


_SIGNS = re.compile(r"\\(?P<escaped>.)|\[(?P<set>[!^]?\]?[^\]]*)\]|(?P<star>\*+)|(?P<any>\?)|(?P<plain>.)", re.DOTALL)
_NOTHING = r"[^\x00-\x{10FFFF}]"


def _expression(pattern: str, *, anywhere: bool, hidden: bool) -> str:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if anywhere and "/" not in pattern.strip("/"):
        names.insert(0, "**")
    if names[-1:] == ["**"]:
        names.append("*")
    folders = "(?:[^/]+/)*" if hidden else "(?:[^./][^/]*/)*"
    before = "".join(folders if name == "**" else f"{_name(name, hidden)}/" for name in names[:-1])
    return before + "".join(_name(name, hidden) for name in names[-1:])


def _name(name: str, hidden: bool) -> str:
    """Return the expression for one name; wildcards mean no dot at its beginning, unless hidden files are meant."""
    signs = list(_SIGNS.finditer(name))
    return "".join(map(_sign, signs)) if hidden or name.startswith(".") else _without_dot(signs)


def _sign(sign: re.Match[str], also_not: str = "") -> str:
    match sign.lastgroup:
        case "star":
            return "[^/]*"
        case "any":
            return f"[^/{also_not}]"
        case "set":
            inside = re.sub(r"([\\\[\]^])", r"\\\1", sign["set"].lstrip("!^"))
            negated = sign["set"][0] in "!^"
            return f"[^/{also_not}{inside}]" if negated else f"[{inside.replace(also_not or '/', '')}]"
    return re.escape(sign[sign.lastgroup or 0])


def _without_dot(signs: list[re.Match[str]]) -> str:
    if not signs:
        return ""
    first, rest = signs[0], "".join(map(_sign, signs[1:]))
    if first.lastgroup == "star":
        return f"(?:[^./][^/]*{rest}|{_without_dot(signs[1:])})"
    return _NOTHING if first[0] == "." else _sign(first, ".") + rest


_MOST_LINES = 10_000  # of one file that are looked at


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

    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")[:_MOST_LINES]
    rules = [rule for line in lines if len(line) <= _MOST_CHARACTERS for rule in _rule(line.removesuffix("\r"))]
    return GitIgnoreSpec(rules, backend="re2")  # in time linear in the name, whatever the rules


def _rule(line: str) -> "Iterator[GitIgnoreSpecPattern]":
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    with suppress(GitIgnorePatternError):
        rule = GitIgnoreSpecPattern(_without_last_spaces(line))
        if rule.include is not None:
            yield rule


def _without_last_spaces(line: str) -> str:
    """A backslash keeps the space after it, and no other one, as in git (pathspec takes the line for broken)."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return f"{text} " if backslashes % 2 and len(text) < len(line) else text


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
        return _tell((found.path for found in walk(files, path) if glob.matches(found.path)), limit)

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
        return _tell(
            (found.path for found in walk(files, ".", all_files=True) if glob.matches(found.path)), MOST_RESULTS
        )

    return list_files


def _tell(found: Iterator[str], limit: int) -> ToolResult:
    paths = list(islice(found, limit + 1))
    cut = cut_head("\n".join(paths[:limit]).encode("utf-8", "replace"), most_lines=limit)
    if len(paths) <= limit:
        return tell_cut(cut, [], empty="(no files match)")
    notice = f"the first {limit} files; use limit={2 * limit} for more, or a finer pattern"
    return tell_cut(cut, [notice], empty="(no files match)", details={"resultLimitReached": limit})
