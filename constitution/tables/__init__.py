"""Knowledge about programs, variables, verbs, places, rules and languages: TOML files beside this module.

This is the only module of the constitution that reads files: packaged ones, which are constants. Files of programs are
read block by block: the first look-up indexes the blocks by name, and a block is parsed when a command names its
program.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

PROGRAM_FILES = (
    *("files", "system", "processes", "security_tools", "surveillance", "network", "clouds", "clusters", "schedulers"),
    *("databases", "secret_managers", "version_control", "packages", "development", "containers", "publishing"),
    *("downloads", "messages", "pipelines", "queues", "preferences", "service_clients", "windows", "shell_escapes"),
    *("wrappers", "others", "terminals", "subcommands"),
)
"""The files of program blocks; a program's blocks apply in this order."""

HEADER = re.compile(
    r"^\[\[(program|wrapper|kind)\]\]\nnames = (?:\"\"\"\n(.*?)\n\"\"\"|\"(.*?)\")\n(?:is = \"(?!\"\")(.*?)\"$)?",
    re.M | re.S,
)

FORM = re.compile(r"^form = \"(.*)\"$", re.M)

Block = dict[str, Any]


@cache
def table(name: str) -> dict[str, Any]:
    """Return a whole table file, parsed: "rules", "variables", "verbs", "places", or a file of programs."""
    return tomllib.loads(_text(name))


@cache
def without_examples(name: str) -> dict[str, Any]:
    """Return a whole table file, parsed without its examples, which take most of the parse time."""
    return tomllib.loads(EXAMPLES.sub("", _text(name)))


EXAMPLES = re.compile(r"^(?:not_)?match = \[(?:\n.*?^|[^\n]*)\]\n", re.M | re.S)


def _text(name: str) -> str:
    with open(f"{__path__[0]}/{name}.toml", encoding="utf-8") as file:
        return file.read()


@cache
def _index() -> tuple[dict[str, dict[str, tuple[str, ...]]], dict[str, frozenset[str]], dict[str, str]]:
    """Return the texts of blocks by kind and name, the kinds of each program, and its forms."""
    texts: dict[str, dict[str, tuple[str, ...]]] = {"program": {}, "wrapper": {}, "kind": {}}
    kinds: dict[str, frozenset[str]] = {}
    forms: dict[str, str] = {}
    for text in map(_text, PROGRAM_FILES):
        found = list(HEADER.finditer(text))
        for match, behind in zip(found, [*found[1:], None], strict=True):
            block = text[match.start() : behind.start() if behind else len(text)]
            kind, many, one, said = match.groups()
            names = words((many or one).replace("\n", "|"), separator="|")
            for name in names:
                texts[kind][name] = (*texts[kind].get(name, ()), block)
            if kind == "kind":
                of_it, form = frozenset((said or "").split()), FORM.search(block)
                kinds.update((name, of_it | kinds[name] if name in kinds else of_it) for name in names)
                forms.update((name, form[1]) for name in names if form)
    return texts, kinds, forms


def words(text: str, *, separator: str | None = None) -> list[str]:
    """Return the words of a text, or its parts between separators, without empty ones."""
    return [part for part in text.split(separator) if part]


class _Pattern:
    """A regular expression that is compiled on first use: a command needs few of them."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        return getattr(_compiled(*self._given), name)  # caching would be hidden state in b-threads


@cache
def _compiled(text: Any, flags: int) -> Any:
    return re.compile(text, flags)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled on first use."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


def byte_pattern(text: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """Return a regular expression for bytes that is compiled on first use."""
    return cast("re.Pattern[bytes]", _Pattern(text, flags))


def one_line(text: str) -> str:
    """Join the lines of a pattern in a table."""
    return text.replace("\n", "")


@cache
def sign(name: str) -> re.Pattern[str]:
    """Return a pattern of `signs.toml`."""
    return re.compile(one_line(table("signs")["patterns"][name]))


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of words of `signs.toml`."""
    return frozenset(table("signs")["lists"][name].split())


def table_names(kind: str) -> frozenset[str]:
    """Return every name that has a block of a kind: "program", "wrapper" or "kind"."""
    return frozenset(_index()[0][kind])


def blocks_of(kind: str, name: str) -> Iterator[Block]:
    """Yield the blocks of a kind for a name, parsed; equal texts give the same block."""
    for text in _index()[0][kind].get(name, ()):
        yield _parsed(text)


def said_of(name: str, key: str) -> list[str]:
    """Return what the blocks of the kinds of a program say under a key; blocks without it are not parsed."""
    return [_parsed(text)[key] for text in _index()[0]["kind"].get(name, ()) if f"\n{key} = " in text]


@cache
def _parsed(text: str) -> Block:
    (rows,) = tomllib.loads(text).values()
    row: Block = rows[0]
    return row


def is_a(name: str, kind: str) -> bool:
    """Return whether a program is of a kind, as "shell" or "builder"."""
    return kind in kinds_of(name)


def kinds_of(name: str) -> frozenset[str]:
    """Return the kinds of a program; none for an unknown one."""
    return _index()[1].get(name, NONE)


NONE = frozenset[str]()


def forms() -> dict[str, str]:
    """Return the analyses of programs that rows cannot describe, by program: "search.find"."""
    return _index()[2]


@cache
def names_of_kind(kind: str) -> frozenset[str]:
    """Return the programs of a kind."""
    return frozenset(name for name, kinds in _index()[1].items() if kind in kinds)
