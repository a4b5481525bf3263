"""Every code block of README.md and docs/ runs and gives what the document says, and every link leads somewhere.

The first two tests are about the documents; the others show that the runner of blocks runs them, and can fail.
"""

import os
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.house import documents
from tests.house.documents import DocumentError
from tests.tables import rows

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [document for document in DOCUMENTS if "```" in document.read_text(encoding="utf-8")]
TARGETS = documents.targets_of((ROOT / "Makefile").read_text(encoding="utf-8"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, an empty home, no key, and the commands of this environment on the path."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("BPAGENT_HOME")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("reader", "few_runs")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", WITH_CODE, ids=lambda document: document.relative_to(ROOT).as_posix())
def test_every_code_block_runs(document: Path) -> None:
    blocks = documents.blocks_of(document.read_text(encoding="utf-8"), str(document.relative_to(ROOT)))

    documents.run(blocks, targets=TARGETS)


@rows("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: Path) -> None:
    assert documents.broken_links(document.read_text(encoding="utf-8"), document.parent) == []


def test_what_a_reader_is_sent_to_see_stands_in_the_file_beside_it() -> None:
    page = (ROOT / "docs/reading.md").read_text("utf-8")
    rows_of_files = re.findall(r"^\|[^|]*\| \[(\S+)\].*\| (.+) \|$", page, re.M)
    missing = [
        f"{path}: {name}"
        for path, words in rows_of_files
        for name in re.findall(r"`(\w+)`", words)
        if not re.search(rf"^ *(class|def) {name}\b", (ROOT / path).read_text("utf-8"), re.M)
    ]

    assert (len(rows_of_files), missing) == (10, [])


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "tour.md").touch()
    text = "[Tour](tour.md#start), [gone](docs/gone.md), [elsewhere](https://example.com/x), [here](#words)"

    assert documents.broken_links(text, tmp_path) == ["docs/gone.md"]


def run(text: str) -> None:
    documents.run(documents.blocks_of(dedent(text), "doc.md"), targets=frozenset({"demo", "test"}))


HOLD = [
    f"```console\n$ ls -A; ls -A ~; python -c 'import sys; print(sys.prefix)'\n{sys.prefix}\n```\n",
    "```python\nnumber = 6\n```\nin words\n```python\nprint(number * 7)\n```\n```output\n42\n```\n",
    "```python\nimport anyio\n\nawait anyio.lowlevel.checkpoint()\nprint('on')\n```\n```output\non\n```\n",
    "```console\n$ echo one; echo two >&2\none\ntwo\n$ true\n$ echo three \\\n    four\nthree four\n```\n",
    "```console exit=3\n$ exit 3\n```\n",
    "```python file=greet.py\nprint('hello')\n```\n```console\n$ python greet.py\nhello\n```\n",
    "```bash\nmake demo\nmake test ARGS=-x  # all of it\n```\n",
    "```yaml\na: [1, 2]\n```\n```text\n1 / 0\n```\n",
    "````text\n```python\n1 / 0\n```\n````\n- item\n\n  ~~~python\n  if True:\n      pass\n  ~~~\n",
]


@pytest.mark.usefixtures("reader")
@rows("text", HOLD)
def test_blocks_do_what_the_document_says(text: str) -> None:
    """The first one: a reader has an empty home and the commands of this environment."""
    run(text)


FAIL = [
    ("```python\nnumber\n```\n", "doc.md:2: NameError: name 'number' is not defined"),
    (
        "# Title\n\n```python\nprint(41)\n```\n\n```output\n42\n```\n",
        "doc.md:8: the document says\n42\nand the code prints\n41\n",
    ),
    ("```output\n42\n```\n", "doc.md:2: an output block stands right after"),
    ("```python\n1\n```\n```text\n```\n\n```output\n```\n", "doc.md:8: an output block"),
    (
        "```python\ndef fail():\n    raise OSError('no')\n```\n\n```python\nx = 1\nfail()\n```\n",
        "doc.md:3: OSError: no",
    ),
    ("```python\nx = 1\nx = = 2\n```\n", "doc.md:3: SyntaxError"),
    ("```python file=greet.py\nprint(\n```\n", "doc.md:2: no well-formed python"),
    (
        "```console\n$ true\n$ echo one\ntwo\n```\n",
        "doc.md:3: echo one\nthe document says\ntwo\nand the command writes\none\n",
    ),
    ("```console\n$ exit 3\n```\n", "doc.md:2: exit code 3, not 0, of: exit 3"),
    ("```console exit=3\n$ true\n```\n", "doc.md:2: exit code 0, not 3"),
    ("```console\necho one\n```\n", "doc.md:2: a console block begins with `$ command`"),
    ("```bash\nmake demo\nmake coffee\n```\n", "doc.md:3: the Makefile has no target 'coffee'"),
    ("```bash\nrm -rf build\n```\n", "doc.md:2: not a `make TARGET` line"),
    ("```yaml\na: [1, 2\n```\n", "doc.md:2: no well-formed yaml: "),
    ("text\n```pyhton\n```\n", "doc.md:3: unknown language 'pyhton'; use `text` for what is not code"),
    ("text\n```\n```\n", "doc.md:3: unknown language ''"),
    ("```python exit=3\n```\n", "doc.md:1: unknown option 'exit' of a python block"),
    ("> ```python\n> 1 / 0\n> ```\n", "doc.md:2: ZeroDivisionError"),
    ("one\n```python\nx = 1\n", "doc.md:2: this block is never closed"),
    ("one\n\n````text\n```\n", "doc.md:3: this block is never closed"),
    ("> ```python\n> x = 1\n\ntwo\n", "doc.md:1: this block is never closed"),
    ("one\n```", "doc.md:2: this block is never closed"),
    ("one ```python\n1 / 0\n```\n", "doc.md:1: a fence has a line of its own"),
]


@pytest.mark.usefixtures("reader")
@rows("text, message", FAIL)
def test_a_block_that_does_not_hold_fails_at_its_line(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as failure:
        run(text)
    assert str(failure.value).startswith(message)


def test_a_command_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "COMMAND_TIME", 0.1)

    with pytest.raises(DocumentError, match="exit code 124"):
        run("```console\n$ sleep 60\n```\n")


def test_targets_are_read_from_the_makefile() -> None:
    assert documents.targets_of("A := 1\nall: test ## x\ntest-all:\n\tmake x: y\n.PHONY: all\n") == {"all", "test-all"}
    assert {"demo", "test", "bench", "lint", "clean", "help"} <= TARGETS


def test_printed_output_matches_the_document() -> None:
    same = {"one\n": "one", "one\n...\nfour\n": "one\ntwo\nthree\nfour\n", "one\n...\n": "one\n", "...\n": "", "": "\n"}
    same |= {"took ... s\n": "took 0.31 s\n", "(a+b)*\n": "(a+b)*  \n\n"}
    others = {"one\n": "one\ntwo\n", "": "one\n", "a...c\n": "a\nc\n", "...\nfour\n": "four\nfive\n", "a.b\n": "axb\n"}

    assert [expected for expected, printed in same.items() if not documents.matches(expected, printed)] == []
    assert [expected for expected, printed in others.items() if documents.matches(expected, printed)] == []
