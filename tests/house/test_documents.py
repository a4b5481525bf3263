"""Every code block of README.md and docs/ runs and gives what the document says, and every link leads somewhere.

The first test holds the documents against it, each one a case. The rest shows that the runner runs, and can fail.
"""

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.house import documents
from tests.house.documents import DocumentError

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TARGETS = documents.targets_of((ROOT / "Makefile").read_text(encoding="utf-8"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, an empty home, no key, and the commands of this environment on the path."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("reader")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.relative_to(ROOT).as_posix())
def test_every_code_block_runs(document: Path) -> None:
    blocks = documents.blocks_of(document.read_text(encoding="utf-8"), str(document.relative_to(ROOT)))

    documents.run(blocks, targets=TARGETS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(document: Path) -> None:
    assert documents.broken_links(document.read_text(encoding="utf-8"), document.parent) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "tour.md").touch()
    text = "[Tour](tour.md#start), [gone](docs/gone.md), [elsewhere](https://example.com/x), [here](#words)"

    assert documents.broken_links(text, tmp_path) == ["docs/gone.md"]


def run(text: str) -> None:
    documents.run(documents.blocks_of(dedent(text), "doc.md"), targets=frozenset({"demo", "test"}))


def failure_of(text: str) -> str:
    with pytest.raises(DocumentError) as failure:
        run(text)
    return str(failure.value)


# Python


def test_python_blocks_of_one_document_continue_each_other() -> None:
    run(
        """
        ```python
        number = 6
        ```
        in words
        ```python
        print(number * 7)
        ```
        ```output
        42
        ```
        """
    )


def test_documents_share_nothing() -> None:
    run("```python\nnumber = 6\n```\n")

    assert failure_of("```python\nnumber\n```\n") == "doc.md:2: NameError: name 'number' is not defined"


def test_output_that_differs_fails_at_its_line() -> None:
    failure = failure_of("# Title\n\n```python\nprint(41)\n```\n\n```output\n42\n```\n")

    assert failure == "doc.md:8: the document says\n42\nand the code prints\n41\n"


def test_an_output_block_belongs_to_the_python_block_before_it() -> None:
    assert "doc.md:2: an output block stands right after" in failure_of("```output\n42\n```\n")
    assert "doc.md:8: an output block" in failure_of("```python\n1\n```\n```text\n```\n\n```output\n```\n")


def test_an_exception_is_named_with_the_line_that_raised_it() -> None:
    text = "```python\ndef fail():\n    raise OSError('no')\n```\n\n```python\nx = 1\nfail()\n```\n"

    assert failure_of(text) == "doc.md:3: OSError: no"


def test_a_syntax_error_is_named_with_its_line() -> None:
    assert failure_of("```python\nx = 1\nx = = 2\n```\n").startswith("doc.md:3: SyntaxError")


def test_await_may_stand_at_the_top() -> None:
    run(
        """
        ```python
        import anyio

        await anyio.lowlevel.checkpoint()
        print("resumed")
        ```
        ```output
        resumed
        ```
        """
    )


def test_types_that_a_document_defines_can_be_resolved() -> None:
    run(
        """
        ```python
        from typing import get_type_hints

        class Left:
            right: "Right"

        class Right:
            pass

        assert get_type_hints(Left) == {"right": Right}
        ```
        """
    )


# Commands


@pytest.mark.usefixtures("reader")
def test_each_command_of_a_console_block_writes_what_stands_below_it() -> None:
    run(
        """
        ```console
        $ echo one; echo two >&2
        one
        two
        $ true
        $ echo three \\
            four
        three four
        ```
        """
    )


def test_a_command_that_writes_something_else_fails_at_its_line() -> None:
    failure = failure_of("```console\n$ true\n$ echo one\ntwo\n```\n")

    assert failure == "doc.md:3: echo one\nthe document says\ntwo\nand the command writes\none\n"


def test_a_command_that_fails_unannounced_is_a_failure() -> None:
    assert failure_of("```console\n$ exit 3\n```\n").startswith("doc.md:2: exit code 3, not 0, of: exit 3")
    assert failure_of("```console exit=3\n$ true\n```\n").startswith("doc.md:2: exit code 0, not 3")


def test_a_command_whose_exit_code_is_announced_may_fail() -> None:
    run("```console exit=3\n$ exit 3\n```\n")


def test_a_command_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "COMMAND_TIME", 0.1)

    assert "exit code 124" in failure_of("```console\n$ sleep 60\n```\n")


def test_a_console_block_begins_with_a_command() -> None:
    assert failure_of("```console\necho one\n```\n") == "doc.md:2: a console block begins with `$ command`"


def test_a_reader_has_an_empty_home_no_key_and_the_commands_of_this_environment(
    reader: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("```console\n$ ls -A; ls -A ~; python -c 'import sys; print(sys.prefix)'\n" + sys.prefix + "\n```\n")

    assert Path.cwd() == reader
    assert not [name for name in os.environ if name.startswith("OPENAI_")]


def test_make_lines_name_targets_that_exist() -> None:
    run("```bash\nmake demo\nmake test ARGS=-x  # all of it\n```\n")

    assert failure_of("```bash\nmake demo\nmake coffee\n```\n") == "doc.md:3: the Makefile has no target 'coffee'"
    assert failure_of("```bash\nrm -rf build\n```\n").startswith("doc.md:2: not a `make TARGET` line")


def test_targets_are_read_from_the_makefile() -> None:
    assert documents.targets_of("A := 1\nall: test ## x\ntest-all:\n\tmake x: y\n.PHONY: all\n") == {"all", "test-all"}
    assert {"demo", "test", "bench", "lint", "clean", "help"} <= TARGETS


# Data, files, and what is not run


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("yaml", "a: [1, 2]", "a: [1, 2"),
        ("json", '{"a": 1}', "{a: 1}"),
        ("jsonl", '{"a": 1}\n{"b": 2}', '{"a": 1}\n{'),
        ("toml", "a = 1", "a = "),
    ],
)
def test_data_is_well_formed(language: str, good: str, bad: str) -> None:
    run(f"```{language}\n{good}\n```\n")

    assert failure_of(f"```{language}\n{bad}\n```\n").startswith(f"doc.md:2: no well-formed {language}: ")


@pytest.mark.usefixtures("reader")
def test_a_block_with_a_file_name_is_written_for_the_blocks_that_follow() -> None:
    run(
        """
        ```python file=greet.py
        print("hello")
        ```
        ```console
        $ python greet.py
        hello
        ```
        """
    )


@pytest.mark.usefixtures("reader")
def test_a_file_that_is_not_well_formed_fails() -> None:
    assert failure_of("```python file=greet.py\nprint(\n```\n").startswith("doc.md:2: no well-formed python")


@pytest.mark.parametrize("language", ["text", "mermaid", "dot"])
def test_what_is_no_code_is_not_run(language: str) -> None:
    run(f"```{language}\n1 / 0\n```\n")


@pytest.mark.parametrize("info", ["pyhton", "", "Python"])
def test_an_unknown_language_fails(info: str) -> None:
    assert failure_of(f"text\n```{info}\n```\n") == (
        f"doc.md:3: nobody knows how to run {info!r}; use `text` for what is not code"
    )


def test_an_unknown_option_fails() -> None:
    assert failure_of("```python exit=3\n```\n") == "doc.md:1: unknown option 'exit' of a python block"


# Fences and wildcards


def test_a_longer_fence_may_hold_a_shorter_one() -> None:
    (block,) = documents.blocks_of("````text\n```python\n1 / 0\n```\n````\n", "doc.md")

    assert block.code == "```python\n1 / 0\n```\n"


def test_a_block_in_a_list_loses_the_indent_of_its_fence() -> None:
    (block,) = documents.blocks_of("- item\n\n  ~~~python\n  if x:\n      y\n  ~~~\n", "doc.md")

    assert (block.line, block.code) == (4, "if x:\n    y\n")


def test_a_block_that_is_never_closed_fails() -> None:
    assert failure_of("one\n```python\nx = 1\n") == "doc.md:2: this block is never closed"


def test_a_fence_that_the_runner_would_miss_fails() -> None:
    assert failure_of("> ```python\n> 1 / 0\n> ```\n").startswith("doc.md:1: a fence has a line of its own")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\n", "one"),
        ("one\n...\nfour\n", "one\ntwo\nthree\nfour\n"),
        ("one\n...\n", "one\n"),
        ("...\n", ""),
        ("took ... s\n", "took 0.31 s\n"),
        ("(a+b)*\n", "(a+b)*  \n\n"),
        ("", "\n"),
    ],
)
def test_output_matches(expected: str, actual: str) -> None:
    assert documents.matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\n", "one\ntwo\n"),
        ("", "one\n"),
        ("a...c\n", "a\nc\n"),
        ("...\nfour\n", "four\nfive\n"),
        ("a.b\n", "axb\n"),
    ],
)
def test_output_does_not_match(expected: str, actual: str) -> None:
    assert not documents.matches(expected, actual)
