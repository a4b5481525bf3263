"""Inline code of other languages, by patterns: calls on string literals are understood, others are risks.

Code of Perl, Ruby, JavaScript, PHP, Lua and R is plain if every word in it is known to be harmless (`doubt_about`).
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from constitution.analysis.program_rows import METADATA
from constitution.effects import UNKNOWN
from constitution.shell.words import unescape_ansi
from constitution.tables import expression, is_a, one_line, pattern, sign, table


class Reading:
    """The effects of inline code: shell text that it starts, (kind, path) pairs of files, and whether it is risky.

    `deeds`: "network" (connects to another machine), "leak" (sends private data there), "fetched" (runs downloaded
    code), "shell" (gives another machine a shell), "forks" (starts itself without end).
    """

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.fed: list[str] = []  # scripts that get the output of the code
        self.paths: list[tuple[str, str]] = []
        self.risks: list[str] = []
        self.deeds: list[str] = []


MAX_CODE = 20_000

ELSEWHERE = pattern(
    r"(?:~|/(?:home|root|etc|usr|opt|var|bin|sbin|lib|boot|dev|sys|proc|srv|mnt|media|Users|run))(?:/|$)"
)
"""A literal that names a place outside the workspace."""

LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
KINDS = ("delete_tree", "rm", "delete", "write", "read", "load")
"""The kinds of file use in calls on string literals, in this order."""


@cache
def _names(row: str) -> str:
    """Return the pattern of the names in a row of the table of calls."""
    return one_line(table("languages")["calls"][row])


@cache
def _call_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.'\"])(?:[\w.]+(?:\(\s*+{LITERAL}\s*+\))?\s*+(?:\.|::))?"
        rf"({'|'.join(map(_names, (*KINDS, 'starts')))})\b\s*+\(?\s*+(?:(?:Dir\.)?glob\s*+\(?\s*+)?"
        rf"(\[?\s*+{LITERAL}(?:[\s,\[\]]+{LITERAL})*\s*+\]?)([^()]{{0,80}})"
    )


@cache
def language_of(program: str) -> str:
    """Return the language of an interpreter by its row in the table, or "" for others."""
    rows = table("languages").items()
    return next((name for name, row in rows if program in row.get("names", "").split()), "")


MODED = pattern(
    rf"(?<![\w.])(?:io\.open|File\.open|File\.new|f?open|file|gzopen)\s*+\(?\s*+(?P<file>{LITERAL})\s*+,\s*+['\"]"
    rf"(?P<mode>[rwaxcbt+]{{1,3}})['\"]"
)
ROOTS = pattern(r"['\"]([/~][^'\"\n]{0,80})['\"]")
HOME_JOINED = pattern(r"\b(?:join|resolve|catfile)\s*\(?\s*'~'\s*,|'~'\s*[+.]")
QX = pattern(r"\b(?:qx|%x|exec|system)\s*+([{(/|!])(.*?)[})/|!]", re.S)
BACKTICKS = pattern(r"`([^`]*)`")
OPENED = pattern(
    rf"\bopen\s*+\(?\s*+[^,;)]*+,\s*+['\"]\s*+(?P<mode>\+?[<>]{{1,2}})[^'\"]*['\"]\s*+,\s*+(?P<file>{LITERAL})"
)
OPENED_AT_ONCE = pattern(r"\bopen\s*+\(?\s*+[\w$]+\s*+,\s*+['\"]\s*+(>{1,2}|\+<)\s*+([^'\"$]+)['\"]")
JOINED = pattern(r"'([^'\\]*)'\s*[+.]\s*(?:'([^'\\]*)'|\"([^\"\\$#]*)\")")
IMPORTED = pattern(r"(?:const|let|var)\s*+\{[^{}]*+\}\s*+=\s*+require\([^()]*+\)")
LOCAL_URL = pattern(
    r"(?:\b(?:fetch|https?\.get|get)\b[\s(]*)?['\"]https?://(localhost|127\.0\.0\.1|\[::1\])[^'\"@]*['\"]"
)


def read_code(code: str, language: str = "") -> Reading:
    """Read Perl, Ruby, JavaScript, PHP, Lua or R by patterns; an unknown language by those of all."""
    reading = Reading()
    if len(code) > MAX_CODE:
        reading.risks.append("run inline code that is too long to read")
        return reading
    if language == "php":
        code = re.sub(r"\b\w+(?=\s*\()", lambda match: match[0].lower(), code)
    code = JOINED.sub(
        lambda match: "'" + "".join(part or "" for part in match.groups()) + "'", sign("home_folder").sub("'~'", code)
    )
    rest = _call_pattern().sub(lambda match: _call(match, reading), code)
    rest = OPENED.sub(lambda match: _opened(match, reading), rest)
    rest = MODED.sub(lambda match: _opened(match, reading), rest)
    reading.paths += [("write", match[2].strip()) for match in OPENED_AT_ONCE.finditer(code)]
    if language == "javascript":
        rest = rest if "child_process" in code else rest.replace(".exec(", "(")  # of a regular expression
    else:
        reading.scripts += [match[2] for match in QX.finditer(code)] + BACKTICKS.findall(code)
        rest = BACKTICKS.sub(lambda match: match[0] if _is_computed(f'"{match[1]}"') else "", rest)
    reading.deeds += _deeds(code)
    rest = LOCAL_URL.sub("", rest)
    if reading.scripts:
        rest = IMPORTED.sub("", rest)
    if re.search(_names("computed_delete"), rest):
        reading.paths.extend(("delete_tree", path) for path in ROOTS.findall(code))
    reading.paths += [
        ("unknown_program", path) for path in ROOTS.findall(rest) if path != "~" and ELSEWHERE.match(path)
    ]
    if HOME_JOINED.search(rest):
        reading.paths.append(("unknown_program", f"~/{UNKNOWN}"))
    if doubt := doubt_about(rest, language or "rare"):
        reading.risks.append(f"run inline code that uses {doubt[:20]!r}")
    return reading


def _deeds(code: str) -> list[str]:
    deeds = []
    if sign("evaluates").search(code) and sign("fetches").search(code):
        deeds.append("fetched")
    if sign("sockets").search(code) and sign("starts_a_shell").search(code):
        deeds.append("shell")
    deeds += [deed for deed, words in (("grows", sign("grows")), ("keys", METADATA)) if words.search(code)]
    if sign("sends").search(LOCAL_URL.sub("", code)):
        deeds += ["sends"] if sign("whole_environment").search(code) is None else ["leak"]
    deeds += ["kills"] if sign("kills").search(code) else []
    return [*deeds, "forks"] if sign("forks").search(code) else deeds


def _call(match: re.Match[str], reading: Reading) -> str:
    """Record a call on string literals; return the part that still needs reading: empty if all is understood."""
    name, texts, after = match[1], re.findall(LITERAL, match[2]), match[3]
    if name.endswith(("popen", "proc_open")) and "[" not in match[2]:
        texts = texts[:1]  # the second is a mode
    words = [_content(text) for text in texts]
    computed = any(_is_computed(text) for text in texts)
    if re.fullmatch(_names("starts"), name):
        reading.scripts.append(words[0] if len(words) == 1 else " ".join(map(quoted, words)))
        reading.scripts += [words[0]] if len(words) > 1 and " " in words[0] else []  # `popen("ls -l", "r")`
        whole = not computed and re.match(r"\s*[,\]]*\s*(\{|$|;|,\s*\{|['\"])|\s*$", after) is not None
        return f" {after}" if whole else match[0]
    kind = next(kind for kind in KINDS if re.fullmatch(_names(kind), name))
    if kind == "rm":
        kind = "delete_tree" if "recursive" in after.lower() else "delete"
    if name == "unlink" and "recursive" in after.lower():
        kind = "delete_tree"
    if kind == "read" and (words[0].lstrip().startswith("|") or REMOTE_FILE.match(words[0])):
        return match[0]  # Ruby runs a command, PHP downloads an address
    if kind == "load":
        return _loaded(words[0], reading) if OTHER_FILE.match(words[0]) else match[0]
    touched = texts if kind.startswith("delete") else texts[:1]
    reading.paths.extend((kind, "" if _is_computed(text) else _content(text)) for text in touched)
    return f" {after}"


OTHER_FILE = pattern(r"/|~|\.\.|[a-z0-9]{3,}:")
REMOTE_FILE = pattern(r"\w+://(?!localhost|127\.|\[::1\])")


def _loaded(file: str, reading: Reading) -> str:
    if ":" in file:
        reading.deeds.append("fetched")
    reading.paths.append(("preload", file))
    return " "


def _opened(match: re.Match[str], reading: Reading) -> str:
    """`open(my $file, '>', 'path')`, `File.open("path", "w")`."""
    kind = "write" if set(match["mode"]) & set("waxc+>") else "read"
    reading.paths.append((kind, "" if _is_computed(match["file"]) else _content(match["file"])))
    return " "


def _content(literal: str) -> str:
    content = literal[1:-1].replace("'~'", "~", 1)  # the home folder, from a quotation of its own
    return unescape_ansi(content) if "\\" in content else content


def _is_computed(literal: str) -> bool:
    return literal[0] != "'" and re.search(r"[$@]\w|[$#]\{", literal) is not None


def quoted(word: str) -> str:
    """Return a word quoted for the shell."""
    return "'" + word.replace("'", "'\\''") + "'"


TEXT = r"\"((?:[^\"\\\n]|\\.){1,400})\"|'((?:[^'\\\n]|\\.){1,400})'"
GROUP = pattern(r"[\s,()\[\]:]*")
DELETES = pattern(r"(?i)\b(?:delete|remove|unlink|rmdir|rm|trash|destroy|erase)\w*|delete-tree")


def read_any(code: str) -> Reading:
    """Read code of any language: literals that begin like a command are commands.

    Paths near words of deletion are deleted.
    """
    reading = Reading()
    if len(code) > MAX_CODE:
        reading.risks.append("run inline code that is too long to read")
        return reading
    reading.scripts += [text for found in sign("macro_commands").findall(code) for text in found if text]
    deletes = DELETES.search(code) is not None
    for words, before in _groups(code):
        if words[0].split()[:1] and is_a(words[0].split()[0].rpartition("/")[2], "quoted_command"):
            if not sign("prints_text").search(before):
                reading.scripts.append(words[0] if len(words) == 1 else " ".join(map(quoted, words)))
        elif deletes:
            reading.paths += [("delete_tree", word) for word in words if re.match(r"[/~]\S*$", word)]
    return reading


def _groups(code: str) -> list[tuple[list[str], str]]:
    """Return groups of consecutive string literals, as the words of one list, with the text before them."""
    groups, end = list[tuple[list[str], str]](), -1
    for match in re.finditer(TEXT, code):
        text = next(part for part in match.groups() if part is not None)
        if groups and GROUP.fullmatch(code, end, match.start()) is not None:
            groups[-1][0].append(text)
        else:
            groups.append(([text], code[max(0, match.start() - 24) : match.start()]))
        end = match.end()
    return groups


def deeds_in(code: str) -> list[str]:
    """Return the effects of calls and statements in inline code of any language."""
    rows: dict[str, dict[str, str]] = table("languages")["deeds"]
    return [deed for deed, row in rows.items() if "anywhere" in row and sign(row["anywhere"]).search(code)]


TCL_STARTS = pattern(r"\b(?:spawn|exec|system)\s+(?:-\w+\s+)*([^;\n\]}]+)")
TCL_RISKS = pattern(
    r"\b(?:eval|source|load|interp|socket|subst|uplevel|after|exec\s+\$)\b|\bopen\s+[\"{]?\s*\||\bopen\s+\S+\s+[wa]"
    r"|\bfile\s+(?!exists|size)"
)
TCL_READS = pattern(r"\bopen\s+[\"{]?([/~.][^\s\"\]}]*)")
TCL_DELETES = pattern(r"\bfile\s+delete\s+(?:-force\s+)?(?:--\s+)?([^;\n\]}]+)")


def read_tcl(code: str) -> Reading:
    """Read Tcl and Expect: the programs they start, and the files they delete."""
    reading = Reading()
    reading.scripts = [text.strip() for text in TCL_STARTS.findall(code)]
    reading.paths = [("delete_tree", path) for paths in TCL_DELETES.findall(code) for path in paths.split()]
    reading.paths += [("read", path) for path in TCL_READS.findall(code)]
    if re.search(r"\bsocket\s+\S+\s+\d+", code):
        reading.deeds.append("shell" if re.search(r"\bexec\b", code) else "network")
    if "$" in "".join(reading.scripts) or TCL_RISKS.search(code):
        reading.risks.append("run Tcl code that starts a program not known in advance")
    return reading


# awk

AWK_TOKEN = pattern(
    r"(?P<blank>[ \t\r]+|\\\r?\n|#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>@?[A-Za-z_]\w*(?:::\w+)?)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<mark>\|&|\|\||&&|>>"
    r"|[-+*/%^<>=!]=|\*\*=?|\+\+|--|[^\w\s\"])|(?P<end>\n)",
    re.S,
)
AWK_REGEX = pattern(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.)*\])*/")
AWK_WORDS = frozenset(["print", "printf", "return", "in", "else", "do", "case", "and", "getline"])
AWK_ENDS = frozenset([";", "}", "\n", ")", ""])
AWK_BEFORE_EXPRESSION = frozenset(["", "\n", "(", ",", "{", "}", ";", "!", "&&", "||", "?", ":", "="])
SECRET_NAME = pattern(r"(?i)key|token|secret|passw|credential")


def read_awk(code: str) -> Reading:
    """Read awk by its tokens: programs started by `system`, pipes and `getline`, and files."""
    reading = Reading()
    try:
        tokens = _awk_tokens(code)
    except ValueError:
        reading.risks.append("run an awk program that cannot be read")
        return reading
    depth, printing = 0, False  # brackets since the last `print`, in which `>` compares
    for index in range(2, len(tokens) - 3):
        token = tokens[index]
        if token in ("print", "printf"):
            depth, printing = 0, True
        elif token in ("\n", ";", "{", "}"):
            printing = False
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token in (">", ">>") and printing and depth <= 0:
            reading.paths.append(("write", _alone(tokens, index)))
        else:
            _awk_token(tokens, index, reading)
    if re.search(r"[\"']/inet[46]?/", code):
        reading.deeds.append("shell" if {"system", "|"} & set(tokens) else "network")
    return reading


def _awk_token(tokens: list[str], index: int, reading: Reading) -> None:
    """Read one token that may start a program, read a file, or hide either."""
    token, after = tokens[index], tokens[index + 1]
    if token in ("|", "|&") and after == "getline":
        whole = tokens[index - 2] in AWK_BEFORE_EXPRESSION and tokens[index - 1][:1] == '"'
        _awk_starts(_content(tokens[index - 1]) if whole else "", reading.scripts, reading)
    elif token in ("|", "|&"):
        _awk_starts(_alone(tokens, index), reading.fed, reading)
    elif token == "system":
        _awk_starts(_alone(tokens, index + 1) if tokens[index + 3] == ")" else "", reading.scripts, reading)
    elif token == "<" and "getline" in tokens[index - 2 : index]:
        reading.paths.append(("read", _alone(tokens, index)))
    elif token == "@include":
        reading.paths.append(("execute", _alone(tokens, index)))
    elif token[:1] == "@" or token in ("ARGV", "ARGC"):
        reading.risks.append(f"run an awk program that uses {token!r}")
    elif token == "ENVIRON" and (after != "[" or tokens[index + 2][:1] != '"' or SECRET_NAME.search(tokens[index + 2])):
        reading.risks.append("run an awk program that reads the environment")


def _alone(tokens: list[str], index: int) -> str:
    """Return the string literal after a token; "" for a computed value."""
    return _content(tokens[index + 1]) if tokens[index + 1][:1] == '"' and tokens[index + 2] in AWK_ENDS else ""


def _awk_starts(script: str, scripts: list[str], reading: Reading) -> None:
    if script:
        scripts.append(script)
    else:
        reading.risks.append("run an awk program that starts others")


def _awk_tokens(code: str) -> list[str]:
    """Return the tokens, with empty ones around them. Raises ValueError for invalid awk."""
    tokens, at = ["", ""], 0
    while at < len(code):
        match = AWK_REGEX.match(code, at) if code[at] == "/" and _expects_operand(tokens) else AWK_TOKEN.match(code, at)
        if match is None or (code[at] == "/" and tokens[-1] in ("++", "--", "getline")):
            raise ValueError(code[at : at + 20])
        if match.lastgroup != "blank":
            tokens.append(match[0] if match.lastgroup else "regular expression")
        at = match.end()
    return [*tokens, "", "", ""]


def _expects_operand(tokens: list[str]) -> bool:
    """Return whether a `/` here begins a regular expression, not a division."""
    last = tokens[-1]
    return last in AWK_WORDS or not (last[-1:].isalnum() or last[-1:] in ('"', ")", "]", "_", "$"))


# Whether code is plain. It is tokenized; in string literals only embedded code counts. A name is known if it is a word
# of the language in `languages.toml`, or if the code itself defines it. A function is known by its name alone, whatever
# its receiver; a call without a name (`f()()`, `x[k]()`, `$f()`) is never known.

TOKEN = pattern(
    r"(?P<blank>\s+|\\\n)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)"
    r"|(?P<name>[A-Za-z_]\w*[?!]?)"
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
    r"\b(?:my|our|local|const|let|var|for|foreach|import|as|rescue|catch|function|sub|def"
    r"|fn)\b\s*([\w$@%,\s:{}()\[\]&*.]*)"
    r"|\|([\w\s,*&]*)\||\(([\w\s,=.{}]*)\)\s*=>|([A-Za-z_]\w*)\s*(?:=>|=(?![=~])|<-|[-+*/|]=)"
    r"|\bfunction\s*\w*\s*\(([^()]*)\)"
)
FUNCTIONS = pattern(
    r"\b(?:function|sub|def|class)\s+(\w+)|([A-Za-z_]\w*)\s*(?:=|<-)\s*(?:async\s*)?(?:function\b"
    r"|\([^()]*\)\s*=>|\w+\s*=>)"
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
