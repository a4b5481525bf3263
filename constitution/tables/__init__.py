"""Knowledge about programs, variables, verbs, places, rules and languages: TOML files beside this module.

This is the one module of the constitution that reads files. They are its own, packaged with it, and never change while
a program runs, so that they are constants. Files of programs are read block by block: the first look-up finds where the
blocks of each name stand, and a block is parsed when a command names its program.
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
"""Files of blocks with names of programs; a program's blocks count in this order."""

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
    """Return a whole table file, parsed without its examples, which take most of the time."""
    return tomllib.loads(EXAMPLES.sub("", _text(name)))


EXAMPLES = re.compile(r"^(?:not_)?match = \[(?:\n.*?^|[^\n]*)\]\n", re.M | re.S)


def _text(name: str) -> str:
    with open(f"{__path__[0]}/{name}.toml", encoding="utf-8") as file:
        return file.read()


@cache
def _index() -> tuple[dict[str, dict[str, tuple[str, ...]]], dict[str, frozenset[str]], dict[str, str]]:
    """Return the texts of blocks by their kind and each name, the kinds of program, and the forms, of each name."""
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
    """Return the words of a text, or its parts between separators; empty ones are left out."""
    return [part for part in text.split(separator) if part]


class _Pattern:
    """A regular expression that is compiled when it is used for the first time: a command needs few of them."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        return getattr(_compiled(*self._given), name)  # not kept here: a b-thread that judges would have hidden state


@cache
def _compiled(text: Any, flags: int) -> Any:
    return re.compile(text, flags)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled with its first use."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


def byte_pattern(text: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """Return a regular expression for bytes that is compiled with its first use."""
    return cast("re.Pattern[bytes]", _Pattern(text, flags))


def one_line(text: str) -> str:
    """Return a pattern that a table breaks into several lines as one."""
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
    """Tell whether a program is of a kind, as "shell" or "builder"."""
    return kind in _index()[1].get(name, ())


def forms() -> dict[str, str]:
    """Return by name where the analysis of a program stands that no row can describe: "search.find"."""
    return _index()[2]


@cache
def names_of_kind(kind: str) -> frozenset[str]:
    """Return the programs of a kind."""
    return frozenset(name for name, kinds in _index()[1].items() if kind in kinds)
