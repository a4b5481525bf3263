"""Secrets that are looked for everywhere, and folders that are offered to others."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import NOTHING, Flow
from constitution.tables.programs import read_line
from constitution.zones import is_private

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["hunts", "hunts_by_name", "locate", "own_server", "serve"]

SECRET_PATTERN = re.compile(
    r"(?i)passw|secret|api[_-]?key|token|credential|AKIA|private[ _]key|aws_|BEGIN.*KEY"
    r"|BEGIN (?:OPENSSH|RSA|PGP|EC)|wallet|mnemonic|\bssn\b"
)
SECRET_NAME = re.compile(
    r"(?i)id_(rsa|dsa|ecdsa|ed25519)|\.(pem|p12|pfx|key|kdbx?|jks|keystore|ovpn|ppk|asc|gpg|wallet)$|^\*?\.env"
    r"|credentials?"
    r"|passw|secret|wallet|\.netrc|\.pgpass|htpasswd|shadow|authorized_keys|known_hosts|token|logins\.json|cookies"
)
EVERYWHERE = re.compile(r"^(/|/(etc|home|root|var|Users|opt|srv|mnt|tmp|data)(/\*?)?|~/?|/(home|Users)/[^/]+/?)$")
NAME_TESTS = ("-name", "-iname", "-path", "-regex", "-iregex", "-wholename")
HUNTS = "search for secrets everywhere"


def _is_everywhere(folder: str, examination: "Examination", walk: "Walk") -> bool:
    return any(
        EVERYWHERE.match(path) or path == examination.discoveries.home
        for path in examination.discoveries.absolute(folder, walk)
    )


def hunts(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`grep -r password /`."""
    line = read_line(argv[1:], frozenset(["-e", "--regexp", "-f", "-A", "-B", "-C", "-m", "-g", "-t", "--include"]))
    recursive = name in ("rg", "ag", "ack") or line.flags & {"-r", "-R", "--recursive"}
    patterns = line.value_of("-e", "--regexp") or line.operands[:1]
    folders = line.operands[0 if line.value_of("-e", "--regexp") else 1 :]
    if not any(map(SECRET_PATTERN.search, patterns)):
        return
    if stdin.names == ("env",):
        examination.found(Effect.SHOW_SECRETS, walk, program=name, says="show the keys in the environment")
    if not recursive:
        return
    if any(_is_everywhere(folder, examination, walk) for folder in folders or (".",)):
        examination.found(Effect.HUNT, walk, program=name, says=HUNTS)


def hunts_by_name(examination: "Examination", name: str, roots: list[str], tests: list[str], walk: "Walk") -> None:
    """`find / -name id_rsa`, `find / -perm -4000`."""
    pairs = list(pairwise(tests))
    named = any(test in NAME_TESTS and _names_secrets(word) for test, word in pairs)
    privileged = any(test == "-perm" and re.match(r"[-/]?(u[+=]s|[46][0-7]{3}|u=s)", word) for test, word in pairs)
    if (named or privileged) and any(_is_everywhere(root, examination, walk) for root in roots):
        examination.found(Effect.HUNT, walk, program=name, says=HUNTS)


def _names_secrets(word: str) -> bool:
    return is_private(word.replace("*", "x")) or SECRET_NAME.search(word) is not None


def locate(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`locate id_rsa`."""
    if any(_names_secrets(word) for word in argv[1:] if not word.startswith("-")):
        examination.found(Effect.HUNT, walk, program=name, says=HUNTS)


def serve(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`python -m http.server -d FOLDER`, `http-server FOLDER`, `busybox httpd -h FOLDER`: the folder is offered."""
    line = read_line(argv[1:], frozenset(["-d", "--directory", "-h", "-p", "-a", "-b", "--bind", "--port", "-l", "-r"]))
    folders = line.value_of("-d", "--directory", "-h", "-r") or [w for w in line.operands if not w.isdigit()] or (".",)
    for folder in folders:
        examination.found(
            Effect.SHARE_TREE, walk, program=name, path=folder, says="offer everything in {path} to others"
        )


def own_server(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """`php -S ADDRESS -t FOLDER`, `ruby -run -e httpd FOLDER`."""
    line = read_line(argv[1:], frozenset(["-S", "-t"]))
    if name == "php" and line.value_of("-S"):
        serve(examination, name, ["php", "-d", *(line.value_of("-t") or (".",))], NOTHING, walk)
    if name == "ruby" and "-run" in argv and "httpd" in argv:
        serve(examination, name, argv[argv.index("httpd") :], NOTHING, walk)
