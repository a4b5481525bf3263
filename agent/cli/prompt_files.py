"""The prompt of the command line: `-` reads it from a pipe, and `@FILE` in it includes a text or a picture."""

import re
import sys
from pathlib import Path

from agent.cli.mistakes import Mistake, say
from agent.tools.files.reading import media_type
from agent.vocabulary.messages import Image, UserMessage

LONGEST_FILE = 256 * 1024
"""Bytes of one text file that a prompt may include."""

LARGEST_PICTURE = 10 * 1024 * 1024
"""Bytes of one picture."""

REFERENCE = re.compile(r"(?<!\S)@(\S+)")
PUNCTUATION = ".,;:!?)\"'"


def read_prompt(given: str) -> str | UserMessage:
    """Return the prompt that an argument means, with the files that it names; a message when pictures are among them.

    Raises Mistake for an empty prompt, and for a file that cannot be included; OSError for one that cannot be read.
    """
    if given == "-":
        return _checked(sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n"))
    texts, pictures = [_checked(given)], []
    for path in _files_in(given):
        content = path.read_bytes() if path.stat().st_size <= LARGEST_PICTURE else b"\0"
        kind = media_type(content[:16])
        if kind is None:
            texts.append(f'<file path="{path}">\n{_text(path, content)}\n</file>')
        else:
            pictures.append(Image(kind, content))
    text = "\n\n".join(texts)
    return UserMessage(text, tuple(pictures)) if pictures else text


def _checked(prompt: str) -> str:
    if not prompt.strip():
        raise Mistake("the prompt is empty; say what the agent is to do")
    return prompt


def _files_in(prompt: str) -> list[Path]:
    """Return the files that a prompt names, each once. A word with @ that names none stays, and the user is told so."""
    found: dict[Path, None] = {}
    for word in REFERENCE.findall(prompt):
        path = next((path for path in map(Path, (word, word.rstrip(PUNCTUATION))) if _is_file(path)), None)
        if path is None:
            say(f"@{word} names no file here, so the model is given these words as they are")
        else:
            found[path] = None
    return list(found)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _text(path: Path, content: bytes) -> str:
    if path.stat().st_size > LONGEST_FILE:
        limit = f"a prompt includes {LONGEST_FILE // 1024} KB of a file at most"
        raise Mistake(f"@{path} is too long: {limit}; leave the @ out, the agent can read it with its tools")
    try:
        return content.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise Mistake(f"@{path} is neither a text in UTF-8 nor a picture; leave the @ out") from error
