"""What a command prints, as far as it matters behind a pipe or in a substitution."""

from constitution.programs.options import Line, read_line
from constitution.shell.escapes import unescape_ansi
from constitution.shell.flow import ANYTHING, NOTHING, Flow, Origin
from constitution.special.search import find_roots, found_below
from constitution.zones import FOUND, UNKNOWN

__all__ = ["output_of"]

FETCHES = frozenset(
    [
        "curl",
        "wget",
        "fetch",
        "http",
        "https",
        "aria2c",
        "nc",
        "ncat",
        "netcat",
        "lynx",
        "w3m",
        "dig",
        "nslookup",
        "host",
        "ssh",
        "scp",
    ]
)
DECODES = frozenset(
    [
        "base64",
        "base32",
        "xxd",
        "openssl",
        "uudecode",
        "gunzip",
        "zcat",
        "bzcat",
        "xzcat",
        "gpg",
        "rev",
        "tr",
        "uncompress",
        "basenc",
        "ascii85",
    ]
)
NAMES_FILES = frozenset(["ls", "fd", "fdfind", "rg", "grep", "egrep"])


def output_of(name: str, argv: list[str], stdin: Flow) -> Flow:
    """Return what a command prints, as far as it matters behind a pipe or in a substitution."""
    if name == "echo":
        return _echo(argv[1:])
    if name == "printf":
        return _printf(argv[1:])
    if name in FETCHES:
        return Flow(Origin.FETCHED)
    if name in DECODES and (name not in ("base64", "base32") or not {"-d", "--decode", "-D", "-di"}.isdisjoint(argv)):
        return stdin if name == "tr" and argv[1:] == ["\\n", "\\0"] else Flow(Origin.DECODED)
    if (
        name in ("cat", "tee")
        and stdin.origin is not Origin.NOTHING
        and (name == "tee" or len(argv) == 1 or argv[1:] == ["-"])
    ):
        return stdin
    return _names(name, argv, stdin)


def _names(name: str, argv: list[str], stdin: Flow) -> Flow:
    if name == "cat" and len(argv) == 2 and not argv[1].startswith("-"):
        return Flow(Origin.FILE, names=(argv[1],))
    if name == "find":
        return Flow(Origin.NAMES, names=tuple(found_below(root, argv) for root in find_roots(argv)))
    if name == "git" and len(argv) > 1 and argv[1] in ("ls-files", "diff", "status", "grep"):
        return Flow(Origin.NAMES, names=(f"./{FOUND}",))
    if name == "mktemp":
        return Flow(Origin.NAMES, names=(f"/tmp/{FOUND}",))
    if name == "pwd":
        return Flow(Origin.NAMES, names=(".",))
    if name in ("grep", "egrep", "head", "tail", "sort", "uniq", "tac") and stdin.origin is Origin.NAMES:
        return stdin
    if name in NAMES_FILES and (
        name not in ("grep", "egrep", "rg") or any(word[:1] == "-" and "l" in word for word in argv[1:])
    ):
        roots = _operands(argv)[1 if name in ("grep", "egrep", "rg", "fd", "fdfind") else 0 :]
        return Flow(Origin.NAMES, names=tuple(f"{root}/{FOUND}" for root in roots or ["."]))
    return ANYTHING


def _operands(argv: list[str]) -> list[str]:
    line: Line = read_line(argv[1:], frozenset(("--include", "--exclude", "-e")))
    return list(line.operands)


def _echo(words: list[str]) -> Flow:
    escapes = False
    while words and words[0] in ("-n", "-e", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    if UNKNOWN in text:
        return Flow(Origin.TEXT, text)
    return Flow(Origin.TEXT, text + "\n") if not (escapes and "\\" in text) else _escaped(text)


def _printf(words: list[str]) -> Flow:
    if words and words[0] == "--":
        words = words[1:]
    if not words or words[0] == "-v":
        return NOTHING
    form, values = words[0], words[1:]
    if form in ("%s", "%s\\n", "%b", "%b\\n", "%s\n"):
        text = "\n".join(values) if "n" in form or "\n" in form else "".join(values)
        return _escaped(text) if "%b" in form and "\\" in text else Flow(Origin.TEXT, text)
    return _escaped(form) if "%" not in form else Flow(Origin.DECODED)


def _escaped(text: str) -> Flow:
    return Flow(Origin.TEXT, unescape_ansi(text.replace("\\0", "\\")))
