"""`grep`: the same lines with `rg` and with Python, limits and notices exact, no pattern that stalls (S2)."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.tools.files.grep import make_grep
from agent.tools.files.line_finder import find_lines
from agent.tools.files.patterns import make_pattern
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import ToolError

from .conftest import Use, plant

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]


@pytest.mark.parametrize("place", ["grep", "grep_there"])
async def test_matches_are_given_with_file_and_number_sorted_by_path(
    request: pytest.FixtureRequest, root: Path, engine: str, place: str
) -> None:
    grep = request.getfixturevalue(place)
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


async def test_what_git_ignores_and_what_is_no_text_is_not_searched(grep: Use, root: Path) -> None:
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


TEXT = """\
Hello wörld 123
  tabs\tand spaces
a.b*c (x) [y] {z} $5 ^ | \\ #
ÄRGER ärger STRASSE straße
١٢٣ combining e\u0301 nbsp\u00a0here
aaa aab abb

- dash -- x&&y ~~ z
"""

PATTERNS = [
    "hello", "Hello", r"w.rld", r"\d+", r"\D+5", r"\w+$", r"^\s", r"\S+\s\S+", r"^$", r"a{2,3}b?", r"a+?b",
    r"(aaa|abb)",
    r"(?:a)(b)", r"[a-c]{3}", r"[^a-z ]", r"[\d.]", r"[]x]", r"[^]x]", r"[a&&b]", r"[[a]", r"\[y\]", r"\$5", r"\^ \|",
    r"\\", "#", r"\bdash\b", r"\Bash", r"ä", r"e.", r"nbsp.here", r"nbsp\shere", "{z}", "}", r"\x41", r"\t",
    "(?i)ärger", "(?i)HELLO W", ".", "", "(", "[", "a**", "a{2}{3}", "(?=x)", r"(a)\1", r"\p{L}", "[[:alpha:]]",
    "(?P<n>a)",
    "a\nb", "\\", r"\A", r"\z", "x{,3}", "x{5000}", "[a--b]", "*", "^*", "a++", "[z-a]", r"[\w-z]",
    r"\é", "(?i", "(?x)a",
]  # fmt: skip


def lines_by_rg(rg: Path, pattern: str, case: str, file: Path) -> list[int]:
    options = ["--no-config", "--text", "--encoding=none", "--line-number", "--max-columns=1", case, "-e", pattern]
    listed = subprocess.run([rg, *options, file], capture_output=True)
    assert listed.returncode in (0, 1), listed.stderr
    return [int(line.partition(b":")[0]) for line in listed.stdout.splitlines()]


@pytest.mark.parametrize("literal", [False, True])
def test_the_engines_understand_a_pattern_alike_or_neither_gets_it(
    root: Path, needs: Callable[[str], Path], literal: bool
) -> None:
    rg, content = needs("rg"), TEXT.encode() + b"caf\xe9 x\n\xff\n"
    plant(root, {"text": content})
    understood = 0

    for text in PATTERNS:
        try:
            pattern = make_pattern(text, literal=literal)
        except ToolError:
            continue
        for case, flags in (("--case-sensitive", 0), ("--ignore-case", re.IGNORECASE)):
            one, other = (re.compile(pattern.python, flags | more) for more in (re.MULTILINE, 0))
            by_python = [number + 1 for number in find_lines(content, one, other)]
            assert by_python == lines_by_rg(rg, pattern.rg, case, root / "text"), text
        understood += 1

    assert understood == (len(PATTERNS) - 1 if literal else 38)


@pytest.mark.parametrize("pattern", ["(?=x)", r"(a)\1", "", "[", r"\p{L}"])
async def test_what_is_not_supported_is_an_error_with_a_cure(grep: Use, root: Path, pattern: str) -> None:
    plant(root, {"f": "a"})

    result = await grep(pattern)

    assert result.is_error
    assert result.text.startswith("the pattern ")


async def test_a_pattern_that_takes_for_ever_takes_until_its_time_is_up(root: Path) -> None:
    plant(root, {"f": "a" * 60 + "b\n"})
    grep = make_grep(Workspace(root), engine="python", timeout=0.5)

    result = await grep.run({"pattern": "(a|a)*c"})

    assert result.is_error
    assert result.text == "the search took longer than 0.5 seconds; use a simpler pattern or fewer files"


async def test_more_files_than_may_be_open_at_once_are_searched(grep: Use, root: Path) -> None:
    plant(root, {f"{number:04}": "foo\n" for number in range(900)})
    before = len(os.listdir("/proc/self/fd"))

    result = await grep("foo", limit=1000)

    assert result.text.count("foo") == 900
    assert len(os.listdir("/proc/self/fd")) == before


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

    denying = make_grep(Workspace(root, denied=[str(tmp_path / "outside"), "inside"]), engine="python")
    assert (await denying.run({"pattern": "foo"})).text == "(no matches)"


@pytest.mark.parametrize("pattern", ["a\0", "a\ud800"])
async def test_what_no_line_can_hold_is_an_error(grep: Use, root: Path, pattern: str) -> None:
    plant(root, {"f": "a"})

    assert (await grep(pattern)).is_error
    assert (await grep(pattern, literal=True)).is_error
