"""The tools `find` and `grep` (S2) and `list_files` (S3): files whose paths match a glob, lines that match a pattern.

Files ignored by git are left out, except by `list_files`.
"""

import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Annotated, Any, BinaryIO

from attrs import frozen

from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, tool
from agent.tools.output import cut_line, tell_lines
from agent.tools.schemas import Limits, Path, compiled, matches
from agent.tools.workspace import Entry, Files, Folder
from agent.vocabulary.errors import ToolError
from agent.vocabulary.messages import ToolResult
from constitution.places import is_private

# Globs. Not `wcmatch`, which backtracks: eight times `**/a/` took it 44 seconds on 40 directories.

_MOST_CHARACTERS = 4096  # of a pattern
Glob = Callable[[str], bool]


def make_glob(pattern: str, *, anywhere: bool = False, hidden: bool = True) -> Glob:
    """Return a predicate of whether a relative path, with / as separator, matches a pattern.

    anywhere: a pattern without / matches names in any directory. hidden: wildcards match names that begin with a dot.
    Raises ToolError for an invalid pattern, or one that leaves its directory.
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
    """Return a pattern as an expression of RE2 for the whole path. Unpaired braces are ordinary characters."""
    parts: list[str] = []
    opened: list[list[int]] = []  # positions of open braces, and of the commas in them
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


# Walks through directories, without what `.gitignore` files leave out.


@frozen(eq=False)
class Rules:
    """The rules of a `.gitignore` file: `expressions`, a set of RE2; `leave_out`, whether each rule ignores."""

    expressions: Any
    leave_out: tuple[bool, ...]

    def says(self, path: str) -> bool | None:
        """Return whether `path` (with a trailing / for a directory) is ignored; None if no rule matches."""
        matching = self.expressions.Match(_as_text(path)) if self.leave_out else ()
        return self.leave_out[max(matching)] if matching else None


_FOLDER = "(?P<ps_d>/)"  # how expressions of `pathspec` for a folder and its content end


def read_rules(content: bytes) -> Rules:
    """Return the rules of a file; invalid lines are ignored.

    A rule matches its path only, not paths below it, which a walk does not reach.
    """
    import re2
    from pathspec.patterns.gitignore import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    expressions, leave_out = re2.Set.SearchSet(), list[bool]()
    for line in content.decode("utf-8", "replace").removeprefix("\ufeff").split("\n"):
        with suppress(GitIgnorePatternError):
            short = line.removesuffix("\r") if len(line) <= _MOST_CHARACTERS else ""
            expression, include = GitIgnoreSpecPattern.pattern_to_regex(short)
            if expression is not None and include is not None:
                whole = expression.replace(_FOLDER, "/$")
                expressions.Add(f"{whole}." if whole.endswith("/") else whole)
                leave_out.append(include)
    expressions.Compile()
    return Rules(expressions, tuple(leave_out))


@frozen
class Ignored:
    """The rules for a directory: (its path relative to a `.gitignore`, the rules of that file), outer first."""

    layers: tuple[tuple[str, Rules], ...] = ()

    def below(self, name: str, folder: Folder) -> "Ignored":
        """Return the rules for the subdirectory `name`, open as `folder`."""
        moved, rules = tuple((f"{path}{name}/", own) for path, own in self.layers), _rules_of(folder)
        return Ignored(moved if rules is None else (*moved, ("", rules)))

    def leaves_out(self, name: str, *, is_directory: bool) -> bool:
        """Return whether an entry of the directory is ignored: the innermost file with a matching rule decides."""
        if name == ".git":
            return True
        entry = f"{name}/" if is_directory else name
        said = (rules.says(path + entry) for path, rules in reversed(self.layers))
        return next((leaves_out for leaves_out in said if leaves_out is not None), False)


_MOST_DEPTH = 200
_RULES = ".gitignore"
_MOST_RULE_BYTES = 1 << 20


@frozen(eq=False)
class Found:
    """A file at `path` below the start. It can be opened until the walk continues."""

    path: str
    is_file: bool
    folder: Folder
    name: str

    def open(self) -> BinaryIO:
        """Return the file, open for reading. Raises PathRefused or OSError."""
        return self.folder.open(self.name)


def walk(files: Files, start: str, *, all_files: bool = False) -> Iterator[Found]:
    """Yield all files below `start`, sorted by path.

    `.gitignore` files from the root down apply, unless `all_files`. Raises PathRefused or OSError if `start` is not a
    readable directory.
    """
    ignored = None if all_files else _rules_above(files, start)
    with files.open_folder(start) as folder:
        yield from _below(folder, "", ignored)


def _below(folder: Folder, path: str, ignored: Ignored | None) -> Iterator[Found]:
    if path.count("/") > _MOST_DEPTH:
        return
    for entry in sorted(folder.entries(), key=_order):
        if ignored is not None and ignored.leaves_out(entry.name, is_directory=entry.is_directory):
            continue
        if not entry.is_directory:
            yield Found(path + entry.name, entry.is_file, folder, entry.name)
            continue
        with suppress(OSError, ToolError), folder.folder(entry.name) as inner:
            below = None if ignored is None else ignored.below(entry.name, inner)
            yield from _below(inner, f"{path}{entry.name}/", below)


def _order(entry: Entry) -> str:
    """Sort key by path: a directory as if its name ended with a /."""
    return f"{entry.name}/" if entry.is_directory else entry.name


def _rules_above(files: Files, start: str) -> Ignored:
    """Return the rules for `start`, from the `.gitignore` files of all directories from the root down to it."""
    root, target = files.resolve("."), files.resolve(start)
    inside = target.startswith(f"{root.rstrip('/')}/")
    place, ignored = root if inside else target, Ignored()
    for name in ["", *(target[len(root) :].strip("/").split("/") if inside else ())]:
        place = f"{place.rstrip('/')}/{name}" if name else place
        with files.open_folder(place) as folder:
            ignored = ignored.below(name, folder)
    return ignored


def _rules_of(folder: Folder) -> Rules | None:
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


# Lines that match.

PIECE = 4 << 20  # bytes of a file read at once
LONGEST_SEARCHED = 64 << 20  # bytes; a longer line is searched in parts


class LinePattern:
    """A regular expression, or a literal text, to search for within single lines."""

    def __init__(self, text: str, *, literal: bool = False, ignore_case: bool = False) -> None:
        """Compile the pattern. Raises ValueError if it is empty, spans lines, or is not supported by RE2."""
        if not text:
            raise ValueError("the pattern is empty; give what to look for")
        if "\n" in text or "\0" in text:
            raise ValueError("the pattern holds a line break or NUL; what is looked for lies within one line")
        try:
            content = text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error
        self._in_line = compiled(content, literal=literal, ignore_case=ignore_case)
        in_piece = content if literal else b"(?m)" + content
        self._in_piece = compiled(in_piece, literal=literal, ignore_case=ignore_case)

    def lines(self, file: BinaryIO, most: int) -> list[int]:
        """Return the numbers of the lines of a file that match, from 1 on and in order, at most `most`."""
        file.seek(0)
        rest, number, found = b"", 1, list[int]()
        while len(found) < most:
            piece = file.read(PIECE)
            content = rest + piece
            cut = content.rfind(b"\n") + 1 if piece else len(content)
            cut = len(content) if cut == 0 and len(content) > LONGEST_SEARCHED else cut
            found += [number + line for line in self._lines_in(content[:cut])]
            number += content.count(b"\n", 0, cut)
            rest = content[cut:]
            if not piece:
                break
        return found[:most]

    def _lines_in(self, content: bytes) -> list[int]:
        """Return the numbers of the lines that match, from 0.

        Every line that matches alone matches in its piece, at the same offset; other matches there span lines.
        """
        found, number, position, counted = list[int](), 0, 0, 0
        while position < len(content) and (match := self._in_piece.search(content, position)) is not None:
            begin = content.rfind(b"\n", 0, match.start()) + 1
            end = len(content) if (newline := content.find(b"\n", begin)) == -1 else newline
            if begin == len(content):
                break
            if self._in_line.search(content[begin:end]):
                number += content.count(b"\n", counted, begin)
                counted = begin
                found.append(number)
            position = end + 1
        return found


_LOOKED_AT = 8192  # first bytes; a file with a NUL in them is binary

Opened = tuple[str, BinaryIO]  # a text file, and the name that is shown


def text_files(files: Files, path: str, secret: list[str]) -> Generator[Opened]:
    """Yield the text file at `path`, or those below it; the caller closes them.

    Those below it with the name of a secret are left out, and added to `secret`: about one that is named the user is
    asked. Raises PathRefused or OSError if `path` cannot be read.
    """
    try:
        with files.open_folder(path):
            pass
    except NotADirectoryError:
        yield path.rstrip("/").rpartition("/")[2], files.open_read(path)
        return
    for found in walk(files, path):
        if found.is_file and is_private(found.path):
            secret.append(found.path)
            continue
        with suppress(OSError, ToolError):
            if found.is_file and (file := _if_text(found.open())) is not None:
                yield found.path, file


def _if_text(file: BinaryIO) -> BinaryIO | None:
    try:
        if b"\0" not in os.pread(file.fileno(), _LOOKED_AT, 0):
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None


LONGEST_LINE = 500  # characters
_READ_AT_ONCE = 4 * LONGEST_LINE + 8  # bytes of a line that are read


def show_lines(file: BinaryIO, name: str, matches: Sequence[int], context: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines with the numbers `matches` (sorted, from 1), and `context` lines before and after each, once.

    Each comes with whether it was cut.
    """
    wanted = iter(matches)
    here = next(wanted, None)
    until = 0  # the last context line of the previous match
    for number, line in _numbered(file, (matches[-1] if matches else 0) + context):
        while here is not None and here < number:
            until, here = here + context, next(wanted, None)
        is_match = number == here
        if is_match or number <= until or (here is not None and number >= here - context):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            shown = cut_line(text, LONGEST_LINE)
            yield f"{name}{':' if is_match else '-'}{number}: {shown}", shown != text


def _numbered(file: BinaryIO, last: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file up to `last` with their numbers; long ones are cut."""
    file.seek(0)
    for number in range(1, last + 1):
        line = piece = file.readline(_READ_AT_ONCE)
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(1 << 20)
        if not line:
            return
        yield number, line


MOST_MATCHES = 100
MOST_NAMED = 10


def make_grep(files: Files) -> Tool:
    """Return the tool `grep`."""

    @tool(category="read", parallel=True)
    async def grep(
        pattern: str,
        path: Annotated[str, Path("read")] = ".",
        ignoreCase: bool = False,  # noqa: N803, as in S2
        literal: bool = False,
        context: Annotated[int, Limits(minimum=0, maximum=100)] = 0,
        limit: Annotated[int, Limits(minimum=1)] = MOST_MATCHES,
    ) -> ToolResult:
        """Search files for a pattern; you get the lines that match, with file and line number.

        Hidden files are searched; files ignored by .gitignore, binary files and secrets (.env, keys) are not. You get
        at most 100 matches and 50 KB, whichever comes first; lines are cut at 500 characters.

        Args:
            pattern: a regular expression as RE2 has them, or a text with `literal`
            path: a directory or a file, relative or absolute
            ignoreCase: take upper and lower case as equal
            literal: take the pattern as a text
            context: lines to show before and after each match
            limit: how many matches, at most
        """
        try:
            sought = LinePattern(pattern, literal=literal, ignore_case=ignoreCase)
        except ValueError as error:
            raise ToolError(f"{error}{'' if literal else '; literal=true takes a text as it is'}") from error
        given_up, secret = threading.Event(), list[str]()
        opened = text_files(files, path, secret)
        try:
            return await run_in_background(lambda: _grep(sought, opened, context, limit, given_up, secret))
        finally:
            given_up.set()

    return grep


def _grep(
    sought: LinePattern,
    opened: Generator[Opened],
    context: int,
    limit: int,
    given_up: threading.Event,
    secret: Sequence[str],
) -> ToolResult:
    """Search the files until there are more than `limit` matches, or the caller has given up. Blocks."""
    shown, count = list[tuple[str, bool]](), 0
    with closing(opened):
        for name, file in opened:
            with file:
                if given_up.is_set():
                    break
                room = limit - count
                numbers = sought.lines(file, room + 1)
                if numbers and room:
                    shown.extend(show_lines(file, name, numbers[:room], context))
                count += len(numbers)
            if count > limit:
                break
    notices, details = [], dict[str, Any]()
    if count > limit:
        notices.append(f"the first {limit} matches; use limit={2 * limit} for more, or a finer pattern")
        details["matchLimitReached"] = limit
    if secret:
        named = ", ".join(secret[:MOST_NAMED])
        notices.append(f"left out, since they may hold secrets: {named}; name one to search it")
    if any(was_cut for _, was_cut in shown):
        notices.append(f"lines were cut at {LONGEST_LINE} characters; use read to see them whole")
        details["linesTruncated"] = True
    return tell_lines([line for line, _ in shown], notices, empty="(no matches)", details=details)
