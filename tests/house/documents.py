"""How the code blocks of a document are run, so that a reader who types them gets what the document says.

A block is what stands between two fences. Its info string, the words after the opening fence, says what is done:

| info string | the block |
| --- | --- |
| `python` | runs; the blocks of one document share a namespace and `await` may stand at the top |
| `output` | is what the `python` block right before it prints |
| `console` | `$ command` lines run in bash; the lines below each are its output (both streams together) |
| `bash` | consists of `make TARGET` lines, and each target exists |
| `yaml` | is well-formed |
| `text` | is not run |

A command ends with exit code 0, or with N where the info string is `console exit=N`. A block of any language with
`file=NAME` is written to that file instead of being run, for the blocks that follow. In the expected output a line
`...` stands for any lines, and `...` within a line for any text. Every document has an empty folder of its own, and a
reader who has `bpagent` on the path, an empty home and no key.
"""

import ast
import contextlib
import inspect
import io
import re
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType

import anyio
import pytest
from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.token import Token
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

COMMAND_TIME = 150  # seconds for one console command


class DocumentError(AssertionError):
    """A document does not hold: the message begins with file and line."""


@frozen
class Block:
    """A fenced block: where its first line of code stands, its language, its options (`exit=3`), its code."""

    path: str
    line: int
    language: str
    options: dict[str, str]
    code: str

    def error(self, reason: str, *, line: int | None = None) -> DocumentError:
        return DocumentError(f"{self.path}:{line or self.line}: {reason}")


def blocks_of(text: str, path: str) -> list[Block]:
    """Every fenced block of a document, in order. Raises DocumentError for a fence that Markdown would not see."""
    tokens, lines = MarkdownIt().parse(text), text.splitlines()
    for token in tokens:
        if token.map and token.type == "fence" and not _is_closed(token, lines[token.map[0] + 1 : token.map[1]]):
            raise DocumentError(f"{path}:{token.map[0] + 1}: this block is never closed")
        if token.map and token.type == "inline" and "```" in token.content:
            raise DocumentError(f"{path}:{token.map[0] + 1}: a fence has a line of its own; this block would never run")
    return [_block(path, token) for token in tokens if token.type == "fence"]


def _is_closed(token: Token, lines: list[str]) -> bool:
    return bool(lines) and re.fullmatch(rf"[\s>]*{re.escape(token.markup)}[`~]*\s*", lines[-1]) is not None


def _block(path: str, token: Token) -> Block:
    assert token.map is not None
    language, *words = token.info.split() or [""]
    options = dict(word.partition("=")[::2] for word in words)
    block = Block(path, token.map[0] + 2, language, options, token.content)
    if unknown := options.keys() - {"file", *(["exit"] if language == "console" else [])}:
        raise block.error(f"unknown option {min(unknown)!r} of a {language} block", line=token.map[0] + 1)
    return block


def broken_links(text: str, folder: Path) -> list[str]:
    """The files that a document in `folder` links to and that are not there; addresses elsewhere are not followed."""
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)
    return [target for target in targets if "://" not in target and not (folder / target).exists()]


def run(blocks: Iterable[Block], *, targets: frozenset[str]) -> None:
    """Run the blocks of one document, in the working directory; `targets` are those of the Makefile.

    Raises DocumentError, naming file and line, at the first block that does not hold.
    """
    printed: str | None = None
    with pytest.MonkeyPatch.context() as patch:
        module = ModuleType("document")
        patch.setitem(sys.modules, module.__name__, module)  # types look there for what the document defines
        for block in blocks:
            if block.language == "output":
                check_output(block, printed)
            printed = _run_block(block, module, targets)


def _run_block(block: Block, module: ModuleType, targets: frozenset[str]) -> str | None:
    """Run one block, and give what it printed if that can be compared."""
    if name := block.options.get("file"):
        check_form(block)
        Path(name).write_text(block.code, encoding="utf-8")
        return None
    match block.language:
        case "python":
            return run_python(block, module)
        case "console":
            run_console(block)
        case "bash":
            check_targets(block, targets)
        case "yaml":
            check_form(block)
        case language if language not in ("text", "output"):
            raise block.error(f"unknown language {language!r}; use `text` for what is not code")
    return None


def run_python(block: Block, module: ModuleType) -> str:
    """Run a block in the namespace of `module`, and give what it printed. Tracebacks show the lines of the document."""
    printed = io.StringIO()
    try:
        code = _compiled(block)
        with contextlib.redirect_stdout(printed):
            _execute(code, module)
    except Exception as error:
        raise block.error(f"{type(error).__name__}: {error}", line=_line_of(error, block)) from error
    return printed.getvalue()


def _compiled(block: Block) -> CodeType:
    source = "\n" * (block.line - 1) + block.code
    code: CodeType = compile(source, block.path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _execute(code: CodeType, module: ModuleType) -> None:
    if code.co_flags & inspect.CO_COROUTINE:

        async def main() -> None:
            await eval(code, module.__dict__)

        anyio.run(main)
    else:
        exec(code, module.__dict__)


def _line_of(error: BaseException, block: Block) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == block.path), None)


def check_output(block: Block, printed: str | None) -> None:
    if printed is None:
        raise block.error("an output block stands right after the python block that prints it")
    if not matches(block.code, printed):
        raise block.error(f"the document says\n{block.code}and the code prints\n{printed}")


def run_console(block: Block) -> None:
    """Run each `$ command`, and compare what it writes and its exit code."""
    expected_exit = int(block.options.get("exit", "0"))
    for line, command, expected in _commands(block):
        exit_code, written = _shell(command)
        if exit_code != expected_exit:
            raise block.error(f"exit code {exit_code}, not {expected_exit}, of: {command}\n{written}", line=line)
        if not matches(expected, written):
            raise block.error(f"{command}\nthe document says\n{expected}and the command writes\n{written}", line=line)


def _commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """The line, the command (which may go on after a backslash) and the expected output of each."""
    lines = block.code.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise block.error("a console block begins with `$ command`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        after = start + 1
        while lines[after - 1].endswith("\\") and after < end:
            after += 1
        command = "\n".join(lines[start:after]).removeprefix("$ ")
        yield block.line + start, command, "".join(f"{line}\n" for line in lines[after:end])


def _shell(command: str) -> tuple[int, str]:
    """The exit code of a command, and both its streams; timeout(1) ends with 124 what takes too long."""
    finished = subprocess.run(
        ["timeout", "--kill-after=2", str(COMMAND_TIME), "bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return finished.returncode, finished.stdout


def check_targets(block: Block, targets: frozenset[str]) -> None:
    """Make sure that each line is `make TARGET`, with a target that exists."""
    for number, line in enumerate(block.code.splitlines(), start=block.line):
        words = line.partition("#")[0].split()
        if words and words[0] != "make":
            raise block.error(f"not a `make TARGET` line; what runs stands in a console block: {line}", line=number)
        for target in words[1:]:
            if "=" not in target and target not in targets:
                raise block.error(f"the Makefile has no target {target!r}", line=number)


def check_form(block: Block) -> None:
    """Make sure that a block of code or data is well-formed, without running it."""
    try:
        if block.language == "python":
            _compiled(block)
        elif block.language == "yaml":
            YAML(typ="safe", pure=True).load(block.code)
    except (SyntaxError, YAMLError) as error:
        raise block.error(f"no well-formed {block.language}: {error}") from error


def matches(expected: str, actual: str) -> bool:
    """Whether `actual` is what was expected; trailing blanks and the end of the last line do not count."""
    pattern = "".join(_line_pattern(line) for line in _trimmed(expected).splitlines())
    return re.fullmatch(pattern, _trimmed(actual)) is not None


def _line_pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return ".*".join(re.escape(part) for part in line.split("...")) + r"\n"


def _trimmed(text: str) -> str:
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def targets_of(makefile: str) -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))
