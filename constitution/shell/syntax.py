"""The syntax tree of a text, and reasons to doubt it.

The parser is imported on first use. It is known to misread some forms; each has a row in `MISREAD`, and text with one
is doubtful: it is judged, but never allowed. A leaf of the tree with `$(`, a backtick or `<(` outside quotes is a
reason for doubt too.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from constitution.shell.scanner import differs, scan
from constitution.tables import pattern

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


MAX_BYTES = 16_384
"""Longer text is not parsed: the parser needs seconds for hostile text of four times that length."""

SCANNED = pattern(rb"[#'`\n]|<<|\(\(")
"""A text without any of these is unambiguous."""

CONTINUED_WORD = pattern(r"[^\s\\]\\\n[^\s]")
CONTROL = pattern(
    r"[\x00\x01-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)

ASCII = bytes(range(128)) + b"x" * 128
"""The bytes that the parser gets to see: its scanner dies of wide characters, as it reads memory that is not its own.
Every byte that is not ASCII belongs to a word; a letter stands for it, and all offsets stay right.
"""

LINE_START = pattern(r"\n\\(?:\n|(?=[\w./-]))")
"""A backslash at the start of a line, which the parser takes for another word of the line before."""

TIMED = pattern(r"(?m)((?:^|[;&|(])[ \t]*+)time(?:[ \t]+-p)?(?=[ \t]+(?:\{|\(|if\b|while\b|for\b|until\b|case\b|!))")
"""`time` in front of a block, which the parser takes for a program; it changes nothing about the block."""

BLANK = pattern(r"\$IFS(?![A-Za-z0-9_])")
BRACED = pattern(r"(^|[;&|(]|[;&|(\n]\s*)(\{[^\s{},;&|()<>'\"$`\\]+(?:,[^\s{},;&|()<>'\"$`\\]*)+\})(?=$|[\s;&|)])")
"""`{rm,-rf,x}` as a command, which is the command `rm -rf x`."""

WORD = r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^\s<>|;&()'\"`\\]++)+"
LATE_STRING = pattern(rf"((?:\d?>>?|&>>?)[ \t]*+{WORD}(?:[ \t]*+\d?>&\d)?)([ \t]*+)(<<<[ \t]*+{WORD})")
"""`> FILE <<< TEXT`, which the parser knows only in the other order; both mean the same."""

TOKEN = pattern(r"\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|[^\\'\"`$]+|.", re.S)
UNCLEAR = "the parser does not see where backticks end"
OPEN_BACKTICK = pattern(r"(?<!\\)(?:\\\\)*`")
"""An unescaped backtick; together with an escaped one the parser pairs them wrongly."""

MISREAD = (
    (pattern(r"\$\{[^{}'\"]*@P\}"), "text that is expanded again"),
    (pattern(r"\bcoproc\b\s+\w+\s*[{(]"), "a named coprocess"),
    (pattern(r"<<-?\s*['\"\\]*[^\s'\"\\;|&<>()]{200}"), "a here-document with a very long end word"),
    (pattern(r"(<<[^<\n]*){16}"), "many here-documents on one line"),
    (pattern(r"(?m)(^|[;&|(]\s*)coproc\s+(\{|\(|if\b|while\b|for\b|until\b|case\b|!)"), "a block as a coprocess"),
)


class Script(NamedTuple):
    """Parsed text: the tree's root, its bytes, and why it is doubtful ("" if it is not)."""

    root: "Node | None"
    source: bytes
    doubt: str = ""


def parse(text: str) -> Script:
    """Parse shell text. Total: text that is too long has no tree, and misread or broken text has a doubt."""
    doubt = _doubt(text)
    if len(text) <= MAX_BYTES and "\\\n" in text and CONTINUED_WORD.search(text):
        text = _joined(text)
    source = _plainly(text).encode("utf-8", "surrogatepass")
    if len(source) > MAX_BYTES:
        return Script(None, b"", f"the text is longer than {MAX_BYTES} bytes")
    root = _root(source)
    if root.has_error and "<<<" in text:
        source = LATE_STRING.sub(r"\3\2\1", _plainly(text)).encode("utf-8", "surrogatepass")
        root = _root(source)
    if root.has_error:
        doubt = doubt or "the text does not parse as shell"
    elif text.count("`") > 2 and _pairs_backticks_wrongly(root, source):
        return _with_dollars(text, doubt)
    elif "\n\\" in text and any(
        node.type == "word" and source[node.start_byte : node.start_byte + 1] == b"\n" for node in _nodes(root)
    ):
        doubt = doubt or "a line begins with a backslash"
    return Script(root, source, doubt or _read_in_two_ways(root, source))


def _joined(text: str) -> str:
    start, parts = 0, list[str]()
    for at in scan(text).joined:
        parts.append(text[start:at])
        start = at + 2
    return "".join(parts) + text[start:]


def _read_in_two_ways(root: "Node", source: bytes) -> str:
    """Return the difference between a tree and a scan of the text, or ""; unambiguous text is not scanned."""
    if not SCANNED.search(source):
        return ""
    found = scan(source.translate(ASCII).decode("ascii"))
    return found.unclear or differs(found, root, source)


def _nodes(root: "Node") -> Iterator["Node"]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children)


def _pairs_backticks_wrongly(root: "Node", source: bytes) -> bool:
    """Return whether there are nested backticks, which the first unescaped one ends."""
    pending = [(root, False)]
    while pending:
        node, within = pending.pop()
        backticks = node.type == "command_substitution" and source[node.start_byte] == ord("`")
        if node.type == "``" or (within and backticks):
            return True
        pending.extend((child, within or backticks) for child in node.children)
    return False


def substitutions(root: "Node", source: bytes) -> "list[Node]":
    """Return the nodes of all command and process substitutions."""
    if not OPENING.search(source):
        return []
    return [node for node in _nodes(root) if node.type in ("command_substitution", "process_substitution")]


def _with_dollars(text: str, doubt: str) -> Script:
    """Parse again with `$(...)` for backticks: the parser joins two pairs in a command."""
    parts, quoted, opened = TOKEN.findall(text), False, False
    for index, part in enumerate(parts):
        if part == '"':
            quoted = not quoted
        elif part == "`":
            parts[index], opened = ")" if opened else "$(", not opened
        elif quoted and part[0] in "'$" and len(part) > 1:
            source = text.encode("utf-8", "surrogatepass")
            return Script(_root(source), source, UNCLEAR)
    source = "".join(parts).encode("utf-8", "surrogatepass")
    root = _root(source)
    if opened or "<<" in text or root.has_error or _pairs_backticks_wrongly(root, source):
        doubt = doubt or UNCLEAR
    return Script(root, source, doubt or _read_in_two_ways(root, source))


@cache
def _parser() -> "Callable[[], Parser]":
    import tree_sitter

    language, parser = tree_sitter.Language(_grammar()), tree_sitter.Parser
    return lambda: parser(language)


def _grammar() -> object:
    """Return the grammar of bash, without its package, whose other imports take half the time."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("tree_sitter_bash")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", folders)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed as tree_sitter_bash._binding; install it again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    grammar: object = module.language()
    return grammar


def _root(source: bytes) -> "Node":
    return _parser()().parse(source.translate(ASCII)).root_node


def _plainly(text: str) -> str:
    """Rewrite forms that the parser does not understand, with equal length so that offsets stay valid."""
    if "\n\\" in text:
        text = LINE_START.sub(lambda match: "\n" + " " * (len(match[0]) - 1), text)
    if "time" in text:
        text = TIMED.sub(lambda match: match[1] + " " * (len(match[0]) - len(match[1])), text)
    if "$IFS" in text and "IFS=" not in text:
        text = BLANK.sub("    ", text)
    return BRACED.sub(lambda match: match[1] + re.sub("[{},]", " ", match[2]), text) if "{" in text else text


def _doubt(text: str) -> str:
    if CONTROL.search(text):
        return "the text holds control or invisible characters"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "the text holds characters that are not text"
    if "\\`" in text and OPEN_BACKTICK.search(text):
        return UNCLEAR
    if "<<" not in text and "coproc" not in text and "@P}" not in text:
        return ""
    return next((why for pattern, why in MISREAD if pattern.search(text)), "")


OPENING = pattern(rb"(?<!\\)(?:\\\\)*(?:\$\(|`|[<>]\()")
PLAIN = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_content", "heredoc_body", "string_content"})
ESCAPED = pattern(rb"\\[ \t]")
WHOLE = frozenset({"string", "heredoc_body", "heredoc_redirect"})
DOLLAR = pattern(rb"(?<!\\)(?:\\\\)*(?:\$\(|`)")
IN_DOCUMENT = pattern(rb"(?<!\\)(?:\\\\)*\$\(")
"""The node types in which backticks are read from the text, not from the tree."""


def overlooked(root: "Node", source: bytes) -> list[str]:
    """Return why the tree of `source` is doubtful: at most one reason."""
    if ESCAPED.search(source) and not _are_covered(root, source):
        return ["the parser leaves something out"]
    if not OPENING.search(source):
        return []
    if any(node.is_named and not node.child_count and _hides(node, source) for node in _nodes(root)):
        return ["a substitution stands where the parser sees none"]
    return []


def _are_covered(root: "Node", source: bytes) -> bool:
    """Return whether every escaped character is in a word: the parser drops some escaped blanks."""
    places = {match.start() for match in ESCAPED.finditer(source)}
    pending = [root]
    while pending and places:
        node = pending.pop()
        if node.child_count and node.type not in WHOLE:
            pending.extend(node.children)
        else:
            places -= {place for place in places if node.start_byte <= place < node.end_byte}
    return not places


def is_quoted(node: "Node", source: bytes) -> bool:
    """Return whether the end word of a here-document is quoted, so that its body is not expanded."""
    while node.type != "heredoc_redirect" and node.parent is not None:
        node = node.parent
    starts = [child for child in node.named_children if child.type == "heredoc_start"]
    return any(re.search(rb"['\"\\]", source[start.start_byte : start.end_byte]) for start in starts)


def _hides(node: "Node", source: bytes) -> bool:
    text = source[node.start_byte : node.end_byte]
    if node.type == "string_content":
        return DOLLAR.search(text) is not None
    if node.type in ("heredoc_body", "heredoc_content"):
        return IN_DOCUMENT.search(text) is not None and not is_quoted(node, source)
    return node.type not in PLAIN and OPENING.search(text) is not None
