"""`find`, `list_files` and `grep`: patterns, git's rules, bounds; and linear time for hostile input (S2, S3)."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.schemas import matches as fits
from agent.tools.search import LinePattern, make_glob, make_grep, read_rules, walk
from agent.tools.shell import is_interactive
from agent.tools.web import to_format
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import ToolError
from tests.tables import rows

from .conftest import Call, plant

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]

PYTHON = ["a.py", "src/b.py", "src/deep/c.py", "src/c.js", ".hidden/d.py", "build/x.py", ".env"]
OUTSIDE, LEAVING = "leaves its directory", ("../**", "/etc/*", "src/../../*", "{..,src}/*", "a/..")


@rows(
    ("tool", "arguments", "text"),
    [
        ("find", {"pattern": "*.py"}, ".hidden/d.py\na.py\nsrc/b.py\nsrc/deep/c.py"),
        ("find", {"pattern": "src/*.py"}, "src/b.py"),
        ("find", {"pattern": "src/**/*.{py,js}"}, "src/b.py\nsrc/c.js\nsrc/deep/c.py"),
        ("find", {"pattern": "*.py", "path": "src"}, "b.py\ndeep/c.py"),
        ("find", {"pattern": "nothing"}, "(no files match)"),
        ("list_files", {"pattern": "*.py"}, "a.py"),
        ("list_files", {"pattern": "**/*.py"}, "a.py\nbuild/x.py\nsrc/b.py\nsrc/deep/c.py"),
        ("list_files", {"pattern": ".*"}, ".env\n.gitignore"),
        ("list_files", {"pattern": "link/*"}, "(no files match)"),
        *(("list_files", {"pattern": each}, OUTSIDE) for each in LEAVING),
    ],
)
async def test_files_are_found_by_name_or_path_and_s3_list_files_keeps_inside(
    call: Call, root: Path, tmp_path: Path, tool: str, arguments: dict[str, str], text: str
) -> None:
    plant(tmp_path, {"outside/secret.py": ""})
    plant(root, {**dict.fromkeys(PYTHON, ""), ".gitignore": "build"})
    if not (root / "link").exists():
        (root / "link").symlink_to(tmp_path / "outside")

    found = (await call(tool, **arguments)).text

    assert found == text or (text == OUTSIDE and OUTSIDE in found)


@pytest.mark.slow
async def test_1000_paths_are_shown_and_how_to_see_more(call: Call, root: Path) -> None:
    plant(root, {f"{number:04}": "" for number in range(1001)})

    result = await call("find", pattern="*")

    assert result.text.endswith("0999\n\n[the first 1000 files; use limit=2000 for more, or a finer pattern]")
    assert dict(result.details) == {"resultLimitReached": 1000}
    assert dict((await call("find", pattern="*", limit=1001)).details) == {}


@rows(
    ("pattern", "path", "meant"),
    [
        ("*.py", "a.py", True), ("*.py", "d/a.py", False), ("**", "a/b", True), ("**/a", "a", True),
        ("a/**", "a", False), ("a/**", "a/b/c", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("?", "é", True), ("[a-c]x", "bx", True), ("[!a]", "b", True), ("[^a]", "a", False), (r"\*", "*", True),
        (r"\*", "a", False), ("{a,b{c,d}}", "bd", True), (r"\{a,b\}", "{a,b}", True), ("[{]", "{", True),
        ("[", "[", True), ("a[", "a[", True), ("*a*a*a*a*b", "a" * 200, False), ("a//b", "a/b", True),
        ("**/**/**/**/*x", "/".join("a" * 60), False), ("./a", "a", True), ("*a" * 12 + "*b", "a" * 250, False),
        ("**/a/" * 12 + "b", "a/" * 40 + "c", False),
    ],
)  # fmt: skip
def test_a_pattern_means_these_paths(pattern: str, path: str, meant: bool) -> None:
    assert make_glob(pattern)(path) is meant


names = st.sampled_from(["a", "b", "ab", "a.log", "x y", "#h", "!n"])
rules = st.sampled_from(
    ["a", "/a", "a/", "*.log", "!a.log", "**/b", "a/**", "a/b", "*", "!*/", "!a", "b*", "[ab]", r"\#h", r"\!n", "# a",
     "x y  ", "", "a/*", "!a/b", "/*", "{a,b}", "?"]
)  # fmt: skip
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(paths, max_size=8), st.lists(rules, max_size=4), st.lists(rules, max_size=3))
def test_the_files_that_git_ignores_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("git")
    for path in map(root.joinpath, paths):
        if not path.exists() and not any(above.is_file() for above in path.parents):
            plant(root, {str(path): ""})
    plant(root, {".gitignore": "\n".join(top)})
    if (root / "a").is_dir():
        plant(root, {"a/.gitignore": "\n".join(inner)})
    git = ["git", "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)

    asked = [*git, "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, check=True, capture_output=True, text=True)

    assert sorted(listed.stdout.split("\n")[:-1]) == sorted(found.path for found in walk(Workspace(root), "."))


CUT = "[lines were cut at 500 characters; use read to see them whole]"
MORE = "[the first {} matches; use limit={} for more, or a finer pattern]"
SOURCES = {"b.py": "x\nfoo = 1\n", "a/c.py": "foo\n", ".hidden": "foo", "a.py": "bar\n"}
IGNORING = {
    ".gitignore": "*.log\nbuild/\n!keep.log\n", "a.log": "foo", "keep.log": "foo", "build/x": "foo",
    "src/.gitignore": "/gen\n", "src/gen/y": "foo", "src/deep/gen/z": "foo", ".git/config": "foo", "binary": b"foo\0",
    "latin": b"caf\xe9 foo\n",
}  # fmt: skip
KEEPING = {".gitignore": "gen\n!kept\nin/**\n!in/x", "kept/x": "bar", "kept/gen/y": "bar", "in/x": "bar", "in/y": "bar"}
LINES = {"f": "one\ntwo\n\nend"}
GREPS: list[tuple[Any, dict[str, Any], str, dict[str, Any]]] = [
    (SOURCES, {"pattern": "fo+"}, ".hidden:1: foo\na/c.py:1: foo\nb.py:2: foo = 1", {}),
    (SOURCES, {"pattern": "nothing"}, "(no matches)", {}),
    (SOURCES, {"pattern": "foo", "path": "a"}, "c.py:1: foo", {}),
    (SOURCES, {"pattern": "foo", "path": "a/c.py"}, "c.py:1: foo", {}),
    ({"f": "1\n2\n3 x\n4\n5 x\n6\n7\n8\n9 x"}, {"pattern": "x", "context": 1},
     "f-2: 2\nf:3: 3 x\nf-4: 4\nf:5: 5 x\nf-6: 6\nf-8: 8\nf:9: 9 x", {}),
    ({"a": "x\n" * 60, "b": "x\n" * 41}, {"pattern": "x"}, f"...b:40: x\n\n{MORE.format(100, 200)}",
     {"matchLimitReached": 100}),
    ({"a": "x\n" * 60, "b": "x\n" * 41}, {"pattern": "x", "limit": 101}, "...b:41: x", {}),
    ({"a": "x\n" * 60}, {"pattern": "x", "limit": 1}, f"a:1: x\n\n{MORE.format(1, 2)}", {"matchLimitReached": 1}),
    ({"f": "x" * 501}, {"pattern": "x"}, f"f:1: {'x' * 500}... [line cut]\n\n{CUT}", {"linesTruncated": True}),
    ({"f": "y" * 500 + "\n"}, {"pattern": "y"}, f"f:1: {'y' * 500}", {}),
    (IGNORING, {"pattern": "foo"}, "keep.log:1: foo\nlatin:1: caf\ufffd foo\nsrc/deep/gen/z:1: foo", {}),
    (IGNORING, {"pattern": "foo", "path": "src"}, "deep/gen/z:1: foo", {}),
    (IGNORING, {"pattern": "foo", "path": "build/x"}, "x:1: foo", {}),  # asked for by name
    (KEEPING, {"pattern": "bar"}, "in/x:1: bar\nkept/x:1: bar", {}),
    (LINES, {"pattern": r"one\stwo"}, "(no matches)", {}),
    (LINES, {"pattern": "^t.o$"}, "f:2: two", {}),
    (LINES, {"pattern": "^$"}, "f:3: ", {}),
    (LINES, {"pattern": "END", "ignoreCase": True}, "f:4: end", {}),
]  # fmt: skip


@rows(("files", "arguments", "text", "details"), GREPS)
async def test_matching_lines_are_given_with_file_and_number(
    call: Call, tmp_path_factory: pytest.TempPathFactory, files: Any, arguments: Any, text: str, details: Any
) -> None:
    folder = tmp_path_factory.mktemp("grep")
    plant(folder, files)

    result = await make_grep(Workspace(folder)).run(arguments)

    assert result.text == text or (text.startswith("...") and result.text.endswith(text[3:]))
    assert dict(result.details) == details


async def test_a_long_answer_is_cut_at_50_kb(call: Call, root: Path) -> None:
    plant(root, {"many": ("z" * 499 + "\n") * 120})

    many = await call("grep", pattern="z", limit=120)

    assert len(many.text) < 51_300
    assert many.text.endswith("[50 KB limit reached]")
    assert many.details["truncation"]["cut_by"] == "bytes"


@rows("pattern", ["(?=x)", r"(a)\1", "", "["])
async def test_an_unsupported_pattern_is_an_error_with_a_cure(call: Call, pattern: str) -> None:
    result = await call("grep", pattern=pattern)

    assert result.is_error
    assert result.text.startswith("the pattern ")


@pytest.mark.slow
async def test_many_files_and_long_ones_are_searched(call: Call, root: Path) -> None:
    filler, count = "x" * 79 + "\n", (9 << 20) // 80
    plant(root, {f"many/{number:04}": "foo\n" for number in range(900)})
    plant(root, {"long": filler * count + "needle\n" + filler * 3 + "needle"})
    before = len(os.listdir("/proc/self/fd"))

    assert (await call("grep", pattern="foo", limit=1000)).text.count("foo") == 900
    assert len(os.listdir("/proc/self/fd")) == before
    assert (await call("grep", pattern="needle")).text == f"long:{count + 1}: needle\nlong:{count + 5}: needle"


async def test_searching_keeps_to_the_workspace(call: Call, root: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"outside/secret": "foo"})
    plant(root, {"inside": "foo"})
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside/secret")
    os.link(tmp_path / "outside/secret", root / "hard")
    os.mkfifo(root / "fifo")

    assert (await call("grep", pattern="foo")).text == "hard:1: foo\ninside:1: foo"
    for path, problem in (("link", "outside the"), ("/etc", "outside the"), ("none", "no such"), ("fifo", "a FIFO")):
        result = await call("grep", pattern="foo", path=path)
        assert (result.is_error, problem in result.text) == (True, True), result.text
    denying = make_grep(Workspace(root, denied=[str(tmp_path / "outside"), "inside"]))
    assert (await denying.run({"pattern": "foo"})).text == "(no matches)"


# Each of these calls would run for minutes to years if it went back and tried again.


def test_patterns_have_a_length_that_can_be_read() -> None:
    with pytest.raises(ToolError, match="4096 are the most"):
        make_glob("a" * 3_000_000)
    with pytest.raises(ValueError, match="100000 are the most"):
        LinePattern("a" * 3_000_000)
    assert read_rules(b"*a" * 20 + b"b").says("a" * 250) is None
    assert read_rules(b"a" + b" " * 1_000_000 + b"b").leave_out == ()
    assert read_rules(b"a   ").says("a")


@rows("command", [": " + "e" * 3_000_000, "a '" * 1_000_000, "sudo " * 600_000])
def test_whether_a_command_waits_is_guessed_from_its_beginning(command: str) -> None:
    assert not is_interactive(command)


@pytest.mark.slow
@rows("part", ["<", "<!--", "<a ", "<!", "<?", "<![CDATA[", '<a b="', "<a b='\">", "<script>", "&", "<div>"])
def test_a_page_that_closes_nothing_is_read_in_linear_time(part: str) -> None:
    assert to_format("begun " + part * 100_000, "text", is_html=True).startswith("begun")


@rows(
    ("pattern", "text", "matches"),
    [
        ("[a-z]+(-[a-z]+)*", "ab-" * 300_000 + "c", True), ("a|ab", "ab", True), ("b", "abc", False),
        ("a$", "a\n", False), (r"\w+", "é", False), ("a", "\ud800", False),
        *((slow, "a" * 5000, False) for slow in ("(a+)+b", "(a|a)*b", "(.*)*(.*)*x", "^([a-z]+)*$!")),
    ],
)  # fmt: skip
def test_a_whole_text_matches_or_not(pattern: str, text: str, matches: bool) -> None:
    assert fits(pattern, text) is matches


@rows("pattern", ["[", r"(a)\1", "(?=a)a", "a" * 100_001])
def test_an_impossible_pattern_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        fits(pattern, "")


async def test_grep_leaves_secrets_out_and_says_so_unless_one_is_named(root: Path) -> None:
    for name in (".env", "key.pem", "a.txt"):
        (root / name).write_text("TOKEN=1\n")
    grep = make_grep(Workspace(root))

    below, named = [await grep.run({"pattern": "TOKEN", "path": path}) for path in (".", ".env")]

    left_out = "[left out, since they may hold secrets: .env, key.pem; name one to search it]"
    assert (below.text, named.text) == (f"a.txt:1: TOKEN=1\n\n{left_out}", ".env:1: TOKEN=1")
