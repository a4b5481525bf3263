"""Inline code of Perl, Ruby, JavaScript, PHP, Lua or R is plain if every word in it is known to be harmless.

The code is tokenized. In string literals only embedded code counts. A name is known if it is a word of the language in
`languages.toml`, or if the code itself defines it. A function is known by its name alone, whatever its receiver; a call
without a name (`f()()`, `x[k]()`, `$f()`) is never known.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from constitution.tables import expression, pattern, table

TOKEN = pattern(
    r"(?P<blank>\s+|\\\n)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)|(?P<name>[A-Za-z_]\w*[?!]?)"
    r"|(?P<number>\.?\d[\w.]*)|(?P<mark>=>|->|::|\?\.|&\.|&&|\|\||[=!]==?|=~|!~|<-|[-+*/%.|<>]=|.)",
    re.S,
)
REGEX = pattern(r"/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/(\w*)")
DELIMITED = pattern(
    r"\s*(?:\{((?:[^{}\\]|\\.)*)\}|\(((?:[^()\\]|\\.)*)\)|\[((?:[^\[\]\\]|\\.)*)\]"
    r"|([^\w\s=,;)>])((?:(?!\4)[^\\]|\\.)*)\4)",
    re.S,
)
ENDS_OPERAND = frozenset([")", "]", "}"])
BEFORE_OPERAND = frozenset(
    "if unless and or not split grep map while until when return puts print p x in else".split()  # noqa: SIM905
)
OF_AN_OBJECT = frozenset([".", "?.", "&.", "->", "::", ":"])
GIVEN = pattern(
    r"\b(?:my|our|local|const|let|var|for|foreach|import|as|rescue|catch|function|sub|def|fn)\b\s*([\w$@%,\s:{}()\[\]&*.]*)"
    r"|\|([\w\s,*&]*)\||\(([\w\s,=.{}]*)\)\s*=>|([A-Za-z_]\w*)\s*(?:=>|=(?![=~])|<-|[-+*/|]=)|\bfunction\s*\w*\s*\(([^()]*)\)"
)
FUNCTIONS = pattern(
    r"\b(?:function|sub|def|class)\s+(\w+)|([A-Za-z_]\w*)\s*(?:=|<-)\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*=>|\w+\s*=>)"
    r"|\{([^{}]*)\}\s*(?:=\s*require\s*\(|from\b)\s*['\"]\.{1,2}/"
)
OF_WORKSPACE = pattern(r"\brequire\(\s*['\"]\.{1,2}(?:/[^'\"]*)?['\"]\s*\)(?:\.\w+)*")
"""A function of a module of the workspace is judged like the module, which is run on import."""
NAME = pattern(r"[A-Za-z_]\w*")
CONSTANT = pattern(r"[A-Z][A-Z0-9_]*")


class Token(NamedTuple):
    """A part of a code: a `name`, a `number`, a `mark`, a literal `text`, a `regex`, or `code` within one."""

    kind: str
    text: str


def doubt_about(code: str, language: str) -> str:
    """Return the first word or form that is not known to be harmless, or "" where there is none."""
    if found := expression("languages", language, "shapes").search(code):
        return found[0].strip() or "`"
    given, functions = _words_of(GIVEN, code), _words_of(FUNCTIONS, code) | {"workspace"}
    code = OF_WORKSPACE.sub("workspace", code)
    tokens = [token for token in _tokens(code, language) if token.kind != "blank"]
    edge = Token("mark", "")
    for index, token in enumerate(tokens):
        before, after = tokens[index - 1] if index else edge, tokens[index + 1] if index + 1 < len(tokens) else edge
        if token.kind == "name" and not _is_known(token.text, before.text, after.text, language, given, functions):
            return token.text
        if token.kind == "text" and (doubt := _within(token.text, before.text, language)):
            return doubt
        if token.kind == "code" and (doubt := doubt_about(token.text, language)):
            return doubt
    return ""


def _is_known(
    name: str, before: str, after: str, language: str, given: frozenset[str], functions: frozenset[str]
) -> bool:
    """Return whether a name is harmless in its context: a word of the language, or defined by the code itself."""
    row = table("languages")[language]
    if (before and before in row["variables"]) or name in functions:
        return True
    if name in _harmless(language) or (language == "php" and name.lower() in _harmless(language)):
        return True
    if after == "(" or expression("languages", "plain", "harmful").search(name):
        return False
    if before in OF_AN_OBJECT:
        return before == ":" or not row.get("properties_are_calls", False) or len(name) == 1
    is_key = after in (":", "=>", "\\", "::") or before == "\\" or (before in "{$" and after == "}")
    known = row.get("data_is_bare") or len(name) == 1 or CONSTANT.fullmatch(name) is not None
    return known or name in given or is_key


def _within(text: str, before: str, language: str) -> str:
    """Return the doubt about a string literal: embedded code, or the name of a function."""
    row = table("languages")[language]
    if (
        (before == "[" or row.get("texts_are_names"))
        and expression("languages", "plain", "harmful").search(text)
        and re.fullmatch(r"\W?\w+\W?", text)
    ):
        return text
    if text[0] == "'":
        return ""
    for code in expression("languages", language, "embeds").findall(text):
        if doubt := doubt_about(code, language):
            return doubt
    return ""


def _tokens(code: str, language: str) -> Iterator[Token]:
    """Yield the tokens of a code; a regular expression has none, unless its replacement is code."""
    row = table("languages")[language]
    quotes, at, before = row.get("quotes", "").split(), 0, Token("mark", "")
    while at < len(code):
        comment = expression("languages", language, "comment").match(code, at)
        match = comment or TOKEN.match(code, at)
        assert match is not None  # its last branch matches any character
        token = Token("blank" if comment else match.lastgroup or "blank", match[0])
        begins = before.text in BEFORE_OPERAND or (before.kind == "mark" and before.text not in ENDS_OPERAND)
        regex = REGEX.match(code, at) if begins and token.text in "//=" and "regex" in row else None
        if regex is not None:
            at, token = regex.end(), Token("regex", "")
        elif token.kind == "name" and token.text in quotes and before.text not in ("->", "$", "@", "%", "{", "."):
            at, tokens = _quoted(code, match.end(), token)
            yield from tokens
            token = tokens[-1]
        else:
            at = match.end()
            yield token
        before = token if token.kind != "blank" else before


def _quoted(code: str, at: int, name: Token) -> tuple[int, list[Token]]:
    """Read the operand of Perl's `q`, `qw`, `m`, `s` or `tr`; without one it is an ordinary name."""
    parts, rest = list[str](), at
    for _ in range(2 if name.text in ("s", "tr", "y") else 1):
        rest = rest - 1 if parts and code[rest - 1] not in ")]}" else rest
        match = DELIMITED.match(code, rest)
        if match is None:
            return at, [name]
        parts.append(next((part for part in (match[1], match[2], match[3], match[5]) if part is not None), ""))
        rest = match.end()
    flags = re.compile(r"\w*").match(code, rest)
    assert flags is not None
    if name.text == "s" and "e" in flags[0]:
        return flags.end(), [Token("code", parts[1] if flags[0].count("e") == 1 else "ee")]
    inner = f'"{parts[-1]}"' if name.text in ("qq", "s", "m", "qr") else "''"
    return flags.end(), [Token("text", inner)]


def _words_of(names: re.Pattern[str], code: str) -> frozenset[str]:
    parts = (part for match in names.finditer(code) for part in match.groups() if part)
    return frozenset(word for part in parts for word in NAME.findall(part))


@cache
def _harmless(language: str) -> frozenset[str]:
    """Return the words of a language that use no files, programs or network."""
    rows = table("languages")
    words = f"{rows['plain']['words']} {rows[language]['words']}"
    return frozenset((words.lower() if language == "php" else words).split())
