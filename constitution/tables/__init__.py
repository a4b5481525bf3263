"""Knowledge about programs, variables, verbs, places, rules and languages: TOML files beside this module.

This is the only module of the constitution that reads files: packaged ones, which are constants. Files of programs are
read block by block: the first look-up indexes the blocks by name, and a block is parsed when a command names its
program.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any, AnyStr, NamedTuple, cast

PROGRAM_FILES = (
    *("files", "system", "processes", "security_tools", "surveillance", "network", "clouds", "clusters", "schedulers"),
    *("databases", "secret_managers", "version_control", "packages", "development", "containers", "publishing"),
    *("downloads", "messages", "pipelines", "queues", "preferences", "service_clients", "windows", "shell_escapes"),
    *("wrappers", "others", "terminals", "subcommands"),
)
"""The files of program blocks; a program's blocks apply in this order."""

HEADER = re.compile(
    r"\n\[\[(program|wrapper|kind)\]\]\nnames = \"(?:\"\"\n(.*?)\n\"\"|([^\"]*))\"\n(?:is = \"([^\"]+)\"$)?",
    re.M | re.S,
)

Block = dict[str, Any]
NONE = frozenset[str]()


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


class Index(NamedTuple):
    """The texts of blocks by kind and name, the kinds of each program, and its form."""

    texts: dict[str, dict[str, tuple[str, ...]]]
    kinds: dict[str, frozenset[str]]
    forms: dict[str, str]


@cache
def _index() -> Index:
    index = Index({"program": {}, "wrapper": {}, "kind": {}}, {}, {})
    for text in map(_text, PROGRAM_FILES):
        found = list(HEADER.finditer(f"\n{text}"))
        for match, end in zip(found, [*(behind.start() for behind in found[1:]), len(text)], strict=True):
            kind, many, one, said = match.groups()
            block = (text[match.start() : end],)
            names = (many or one).replace("\n", "").split("|")
            texts = index.texts[kind]
            for name in names:
                texts[name] = texts[name] + block if name in texts else block
            if kind == "kind":
                _add_kinds(index, names, frozenset(said.split()) if said else NONE, block[0])
    return index


def _add_kinds(index: Index, names: list[str], kinds: frozenset[str], block: str) -> None:
    for name in names:
        index.kinds[name] = index.kinds[name] | kinds if name in index.kinds else kinds
    _, form, rest = block.partition('\nform = "')
    if form:
        index.forms.update(dict.fromkeys(names, rest.partition('"')[0]))


class _Pattern:
    """A regular expression that is compiled on first use: a command needs few of them."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        return getattr(_compiled(*self._given), name)  # caching would be hidden state in b-threads


@cache
def _compiled(text: Any, flags: int) -> Any:
    return re.compile(text, flags)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled on first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


def one_line(text: str) -> str:
    """Join the lines of a pattern in a table."""
    return text.replace("\n", "")


@cache
def expression(name: str, section: str, key: str) -> re.Pattern[str]:
    """Return a pattern in a section of a table file."""
    return re.compile(one_line(table(name)[section][key]))


def sign(name: str) -> re.Pattern[str]:
    """Return a pattern of `signs.toml`."""
    return expression("signs", "patterns", name)


@cache
def words_in(name: str, section: str, key: str) -> frozenset[str]:
    """Return a list of words in a section of a table file."""
    return frozenset(table(name)[section][key].split())


def table_names(kind: str) -> frozenset[str]:
    """Return every name that has a block of a kind: "program", "wrapper" or "kind"."""
    return frozenset(_index().texts[kind])


def blocks_of(kind: str, name: str) -> Iterator[Block]:
    """Yield the blocks of a kind for a name, parsed; equal texts give the same block."""
    for text in _index().texts[kind].get(name, ()):
        yield _parsed(text)


def said_of(name: str, key: str) -> list[str]:
    """Return what the blocks of the kinds of a program say under a key; blocks without it are not parsed."""
    return [_parsed(text)[key] for text in _index().texts["kind"].get(name, ()) if f"\n{key} = " in text]


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
    return _index().kinds.get(name, NONE)


def forms() -> dict[str, str]:
    """Return the analyses of programs that rows cannot describe, by program: "search.find"."""
    return _index().forms


@cache
def names_of_kind(kind: str) -> frozenset[str]:
    """Return the programs of a kind."""
    return frozenset(name for name, kinds in _index().kinds.items() if kind in kinds)
