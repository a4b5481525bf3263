"""`find` and `list_files`: glob patterns, git's rules, and the bounds of the workspace (S2, S3)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.files.find import make_glob, walk
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import ToolError

from .conftest import Use, plant

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("place", ["find", "find_there"])
async def test_files_are_found_by_name_anywhere_or_by_path(
    request: pytest.FixtureRequest, root: Path, place: str
) -> None:
    find = request.getfixturevalue(place)
    plant(root, dict.fromkeys(["a.py", "src/b.py", "src/deep/c.py", "src/c.js", ".hidden/d.py"], ""))

    assert (await find("*.py")).text == ".hidden/d.py\na.py\nsrc/b.py\nsrc/deep/c.py"
    assert (await find("src/*.py")).text == "src/b.py"
    assert (await find("src/**/*.{py,js}")).text == "src/b.py\nsrc/c.js\nsrc/deep/c.py"
    assert (await find("*.py", path="src")).text == "b.py\ndeep/c.py"
    assert (await find("nothing")).text == "(no files match)"


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


@pytest.mark.parametrize(
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
    assert make_glob(pattern).matches(path) is meant


@pytest.mark.parametrize("pattern", ["", "/", "a\0", "{a,b}" * 10])
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(ToolError):
        make_glob(pattern)


names = st.sampled_from(["a", "b", "ab", "a.log", "x y", "#h", "!n"])
rules = st.sampled_from(
    ["a", "/a", "a/", "*.log", "!a.log", "**/b", "a/**", "a/b", "*", "!*/", "!a", "b*", "[ab]", r"\#h", r"\!n", "# a",
     "x y  ",
     "", "a/*", "!a/b", "/*", "{a,b}", "?"]
)  # fmt: skip
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(paths, max_size=8), st.lists(rules, max_size=4), st.lists(rules, max_size=3))
def test_what_is_left_out_is_what_git_leaves_out(
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


async def test_the_walk_is_that_of_rg(root: Path, needs: Callable[[str], Path]) -> None:
    rg = needs("rg")
    plant(
        root,
        {
            ".gitignore": "*.o\n/only\nout/\n!out/x\nkeep/*\n!keep/this\n", "a.o": "", "s/a.o": "", "only": "",
            "s/only": "",
            "out/x": "", "s/out": "", "keep/this": "", "keep/that": "", ".h/i": "", "s/.gitignore": "!*.o\n",
            ".git/HEAD": "",
        },
    )  # fmt: skip

    options = ["--files", "--hidden", "--no-require-git", "--no-ignore-global", "--glob=!.git", "--no-config"]
    listed = subprocess.run([rg, *options], cwd=root, check=True, capture_output=True, text=True)

    assert sorted(listed.stdout.split()) == sorted(found.path for found in walk(Workspace(root), "."))
