"""`find`, `list_files` and `grep`: patterns, git's rules, bounds; and linear time for hostile input (S2, S3)."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.files import edited
from agent.tools.schemas import matches as fits
from agent.tools.search import LinePattern, make_glob, make_grep, read_rules, walk
from agent.tools.shell import is_interactive
from agent.tools.web import to_format
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import ToolError
from tests.tables import rows

from .conftest import Use, plant

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]


async def test_files_are_found_by_name_anywhere_or_by_path(find: Use, root: Path) -> None:
    plant(root, dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py", "src/c.js", ".hidden/d.py"], ""))

    assert (await find("*.py")).text == ".hidden/d.py\na.py\nsrc/b.py\nsrc/deep/c.py"
    assert (await find("src/*.py")).text == "src/b.py"
    assert (await find("src/**/*.{py,js}")).text == "src/b.py\nsrc/c.js\nsrc/deep/c.py"
    assert (await find("*.py", path="src")).text == "b.py\ndeep/c.py"
    assert (await find("nothing")).text == "(no files match)"


@pytest.mark.slow
async def test_1000_paths_are_shown_and_how_to_see_more(find: Use, root: Path) -> None:
    plant(root, {f"{number:04}": "" for number in range(1001)})

    result = await find("*")

    assert result.text.endswith("0999\n\n[the first 1000 files; use limit=2000 for more, or a finer pattern]")
    assert dict(result.details) == {"resultLimitReached": 1000}
    assert dict((await find("*", limit=1001)).details) == {}


async def test_s3_list_files_matches_from_the_root_and_keeps_inside(find: Use, root: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"outside/secret.py": ""})
    plant(root, {"a.py": "", "src/b.py": "", ".env": "", ".hidden/c.py": "", "build/x.py": "", ".gitignore": "build"})
    (root / "link").symlink_to(tmp_path / "outside")

    async def listed(pattern: str) -> str:
        text: str = (await find(pattern, tool="list_files")).text
        return text

    assert await listed("*.py") == "a.py"
    assert await listed("**/*.py") == "a.py\nbuild/x.py\nsrc/b.py"
    assert await listed(".*") == ".env\n.gitignore"
    assert await listed("link/*") == "(no files match)"
    for pattern in ("../**", "/etc/*", "src/../../*", "{..,src}/*", "a/.."):
        assert "leaves its directory" in await listed(pattern)


@rows(
    ("pattern", "path", "meant"),
    [
        ("*.py", "a.py", True), ("*.py", "d/a.py", False), ("**", "a/b", True), ("**/a", "a", True), 
        ("a/**", "a", False),
        ("a/**", "a/b/c", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True), 
        ("?", "é", True), ("[a-c]x", "bx", True),
        ("[!a]", "b", True), ("[^a]", "a", False), (r"\*", "*", True), (r"\*", "a", False), ("{a,b{c,d}}", "bd", True),
        (r"\{a,b\}", "{a,b}", True), ("[{]", "{", True), ("[", "[", True), ("a[", "a[", True),
        ("*a*a*a*a*b", "a" * 200, False),
        ("**/**/**/**/*x", "/".join("a" * 60), False), ("./a", "a", True), ("a//b", "a/b", True),
    ],
)  # fmt: skip
def test_a_pattern_means_these_paths(pattern: str, path: str, meant: bool) -> None:
    assert make_glob(pattern)(path) is meant


names = st.sampled_from(["a", "b", "ab", "a.log", "x y", "#h", "!n"])
rules = st.sampled_from(
    ["a", "/a", "a/", "*.log", "!a.log", "**/b", "a/**", "a/b", "*", "!*/", "!a", "b*", "[ab]", r"\#h", r"\!n", "# a",
     "x y  ",
     "", "a/*", "!a/b", "/*", "{a,b}", "?"]
)  # fmt: skip
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(paths, max_size=8), st.lists(rules, max_size=4), st.lists(rules, max_size=3))
def test_the_files_that_git_ignores_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("git")
    for path in paths:
        if (
            not any((root / path).parents[i].is_file() for i in range(len(path.split("/"))))
            and not (root / path).exists()
        ):
            plant(root, {path: ""})
    plant(root, {".gitignore": "\n".join(top)})
    if (root / "a").is_dir():
        plant(root, {"a/.gitignore": "\n".join(inner)})
    git = ["git", "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)

    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    )

    assert sorted(listed.stdout.split("\n")[:-1]) == sorted(found.path for found in walk(Workspace(root), "."))


async def test_matches_are_given_with_file_and_number_sorted_by_path(grep: Use, root: Path) -> None:
    plant(root, {"b.py": "x\nfoo = 1\n", "a/c.py": "foo\n", ".hidden": "foo", "a.py": "bar\n"})

    result = await grep("fo+")

    assert result.text == ".hidden:1: foo\na/c.py:1: foo\nb.py:2: foo = 1"
    assert dict(result.details) == {}
    assert (await grep("nothing")).text == "(no matches)"
    assert (await grep("foo", path="a")).text == "c.py:1: foo"
    assert (await grep("foo", path="a/c.py")).text == "c.py:1: foo"


async def test_lines_around_a_match_are_shown_once_and_marked(grep: Use, root: Path) -> None:
    plant(root, {"f": "1\n2\n3 x\n4\n5 x\n6\n7\n8\n9 x"})

    assert (await grep("x", context=1)).text == ("f-2: 2\nf:3: 3 x\nf-4: 4\nf:5: 5 x\nf-6: 6\nf-8: 8\nf:9: 9 x")


async def test_100_matches_are_shown_and_that_there_are_more(grep: Use, root: Path) -> None:
    plant(root, {"a": "x\n" * 60, "b": "x\n" * 41})

    result = await grep("x")

    assert result.text.endswith("b:40: x\n\n[the first 100 matches; use limit=200 for more, or a finer pattern]")
    assert dict(result.details) == {"matchLimitReached": 100}
    assert dict((await grep("x", limit=101)).details) == {}
    assert (await grep("x", limit=1)).text.startswith("a:1: x\n\n[the first 1 matches")


async def test_long_lines_and_long_answers_are_cut_and_said_so(grep: Use, root: Path) -> None:
    plant(root, {"wide": "x" * 501 + "\n" + "y" * 500 + "\n", "many": "z" * 499 + "\n"})

    wide = await grep("x")
    assert wide.text.startswith(f"wide:1: {'x' * 500}... [line cut]\n\n[lines were cut at 500 characters; use read")
    assert wide.details["linesTruncated"] is True
    assert dict((await grep("y")).details) == {}

    plant(root, {"many": ("z" * 499 + "\n") * 120})
    many = await grep("z", limit=120)
    assert len(many.text) < 51_300
    assert many.text.endswith("[50 KB limit reached]")
    assert many.details["truncation"]["cut_by"] == "bytes"


async def test_ignored_and_binary_files_are_not_searched(grep: Use, root: Path) -> None:
    plant(
        root,
        {
            ".gitignore": "*.log\nbuild/\n!keep.log\n", "a.log": "foo", "keep.log": "foo", "build/x": "foo",
            "src/.gitignore": "/gen\n", "src/gen/y": "foo", "src/deep/gen/z": "foo", ".git/config": "foo",
            "binary": b"foo\0", "latin": b"caf\xe9 foo\n",
        },
    )  # fmt: skip

    assert (await grep("foo")).text == "keep.log:1: foo\nlatin:1: caf\ufffd foo\nsrc/deep/gen/z:1: foo"
    assert (await grep("foo", path="src")).text == "deep/gen/z:1: foo"
    assert (await grep("foo", path="build/x")).text == "x:1: foo"  # asked for by name
    plant(root, {".gitignore": "gen\n!kept\nin/**\n!in/x", "kept/x": "bar", "kept/gen/y": "bar"})
    plant(root, {"in/x": "bar", "in/y": "bar"})
    assert (await grep("bar")).text == "in/x:1: bar\nkept/x:1: bar"


@rows("pattern", ["(?=x)", r"(a)\1", "", "["])
async def test_an_unsupported_pattern_is_an_error_with_a_cure(grep: Use, root: Path, pattern: str) -> None:
    plant(root, {"f": "a"})

    result = await grep(pattern)

    assert result.is_error
    assert result.text.startswith("the pattern ")


async def test_a_pattern_matches_within_one_line_only(grep: Use, root: Path) -> None:
    plant(root, {"f": "one\ntwo\n\nend"})

    assert (await grep(r"one\stwo")).text == "(no matches)"
    assert (await grep("^t.o$")).text == "f:2: two"
    assert (await grep("^$")).text == "f:3: "
    assert (await grep("END", ignoreCase=True)).text == "f:4: end"


@pytest.mark.slow
async def test_more_files_than_may_be_open_at_once_are_searched(grep: Use, root: Path) -> None:
    plant(root, {f"{number:04}": "foo\n" for number in range(900)})
    before = len(os.listdir("/proc/self/fd"))

    result = await grep("foo", limit=1000)

    assert result.text.count("foo") == 900
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
async def test_matches_are_found_across_pieces_and_in_the_last_line(grep: Use, root: Path) -> None:
    filler = "x" * 79 + "\n"
    count = (9 << 20) // 80
    plant(root, {"long": filler * count + "needle\n" + filler * 3 + "needle"})

    assert (await grep("needle")).text == f"long:{count + 1}: needle\nlong:{count + 5}: needle"


async def test_searching_keeps_to_the_workspace(grep: Use, root: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"outside/secret": "foo"})
    plant(root, {"inside": "foo"})
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside/secret")
    os.link(tmp_path / "outside/secret", root / "hard")
    os.mkfifo(root / "fifo")

    assert (await grep("foo")).text == "hard:1: foo\ninside:1: foo"
    assert "outside the allowed paths" in (await grep("foo", path="link")).text
    assert "outside the allowed paths" in (await grep("foo", path="/etc")).text
    assert (await grep("foo", path="none")).is_error
    assert (await grep("foo", path="fifo")).is_error

    denying = make_grep(Workspace(root, denied=[str(tmp_path / "outside"), "inside"]))
    assert (await denying.run({"pattern": "foo"})).text == "(no matches)"


MANY = 200_000


@rows(
    ("text", "wanted", "problem"),
    [("a" * 2 * MANY, "a" * MANY, "stands 100 times or more"), ("\n" * 2 * MANY + "x", "\n" * MANY + "y", "not found"),
     ("a" * 2 * MANY + "x", "a" * MANY + "y", "not found"), ("\r\n" * MANY, "\n" * (MANY // 2), "100 times or more")],
)  # fmt: skip
def test_a_text_that_nearly_stands_everywhere_is_looked_for_once(text: str, wanted: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        edited(text, wanted, "", "file")


def test_patterns_have_a_length_that_can_be_read() -> None:
    with pytest.raises(ToolError, match="4096 are the most"):
        make_glob("a" * 3_000_000)
    with pytest.raises(ValueError, match="100000 are the most"):
        LinePattern("a" * 3_000_000)


def test_several_stars_in_a_pattern_stay_linear() -> None:
    assert not make_glob("*a" * 12 + "*b", anywhere=True)("a" * 250)
    assert not make_glob("**/a/" * 12 + "b")("a/" * 40 + "c")
    assert read_rules(b"*a" * 20 + b"b").says("a" * 250) is None


def test_spaces_in_a_gitignore_file_are_counted_once() -> None:
    assert read_rules(b"a" + b" " * 1_000_000 + b"b").leave_out == ()
    assert read_rules(b"a   ").says("a")


@rows("command", [": " + "e" * 3_000_000, "a '" * 1_000_000, "sudo " * 600_000])
def test_whether_a_command_waits_is_guessed_from_its_beginning(command: str) -> None:
    assert not is_interactive(command)


@pytest.mark.slow
def test_a_page_that_closes_nothing_is_read_in_linear_time() -> None:
    parts = ("<", "<!--", "<a ", "<!", "<?", "<![CDATA[", '<a b="', "<a b='\">", "<script>", "&", "<div>")

    assert [
        part for part in parts if not to_format("begun " + part * 100_000, "text", is_html=True).startswith("begun")
    ] == []


# Patterns that a whole text has to match: in linear time, whatever the expression.


@rows(
    ("pattern", "text", "matches"),
    [
        ("[a-z]+(-[a-z]+)*", "ab-" * 300_000 + "c", True),
        ("a|ab", "ab", True),
        ("b", "abc", False),
        ("a$", "a\n", False),
        (r"\w+", "é", False),
        ("a", "\ud800", False),
    ],
)
def test_a_whole_text_matches_or_not(pattern: str, text: str, matches: bool) -> None:
    assert fits(pattern, text) is matches


@rows("pattern", ["(a+)+b", "(a|a)*b", "(.*)*(.*)*x", "^([a-z]+)*$!"])
def test_no_pattern_takes_forever(pattern: str) -> None:
    assert not fits(pattern, "a" * 5000)


@rows("pattern", ["[", r"(a)\1", "(?=a)a", "a" * 100_001])
def test_an_impossible_pattern_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="the pattern"):
        fits(pattern, "")
