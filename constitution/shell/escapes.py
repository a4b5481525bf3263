"""What a backslash means: outside quotes, in double quotes, and in `$'...'`."""

import re
from typing import Literal

from constitution.zones import UNKNOWN

__all__ = ["unescape_ansi", "unescape_bare", "unescape_double"]

NAMED = {"n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "r": "\r", "v": "\v"}
ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S)


def unescape_bare(text: str) -> list[tuple[str, Literal["bare", "quoted", "split"]]]:
    """Return the pieces of an unquoted word: a character after a backslash is quoted, a continued line is joined."""
    if "\\" not in text:
        return [(text, "bare")]
    pieces = re.findall(r"\\(.)|([^\\]+)|(\\)", text, re.S)
    return [(quoted, "quoted") if quoted else (bare or last, "bare") for quoted, bare, last in pieces if quoted != "\n"]


def unescape_double(text: str) -> str:
    r"""Return the content of a double-quoted string: `\$`, `` \` ``, `\"`, `\\` and a continued line are special."""
    return re.sub(r'\\([$`"\\])|\\\n', lambda match: match[1] or "", text) if "\\" in text else text


def unescape_ansi(text: str) -> str:
    """Return the content of a `$'...'` string."""
    return ANSI.sub(_ansi, text)


def _ansi(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal or match[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8) & 0xFF
        return chr(code) if 0 < code < 0x110000 else UNKNOWN
    if match[5]:
        return chr(ord(match[5].upper()) & 0x1F) or UNKNOWN
    return NAMED.get(match[6], match[6])
