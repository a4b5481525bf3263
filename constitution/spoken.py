"""What the words of a command speak of, taken apart: `release:perform`, `publishToMavenLocal`, `deploy-prod.sh`."""

import re
from functools import cache, lru_cache

from constitution.tables import table

__all__ = [
    "acts",
    "destroys",
    "fetches",
    "looks",
    "names_production",
    "parts",
    "publishes",
    "stays",
    "task_of",
    "verbs",
]


PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

WORD = re.compile(r"^[@+:_]*\.?[A-Za-z][\w:.+@-]*$")
FILE = re.compile(
    r"\.(py|sh|js|ts|mjs|md|rst|ya?ml|json|toml|tgz|zip|txt|tar|gz|whl|apk|aab|ipa|html|css|go|rs|rb|php|java|lock|cfg"
    r"|ini|conf|sql|csv|ipynb|log|xml|deb|rpm|c|h|cpp|tf|tfvars|exs?|feature|com|org|net|io|dev|app)$"
)

ENVIRONMENT = re.compile(
    r"(?i)(env|environment|stage|settings_module|profile|context|target|stack|database_url|_url|_uri|host|config)$"
)
IN_PRODUCTION = re.compile(r"(?i)(^|[^a-z])(prod|production|staging|live|prd|stg|preprod)([^a-z]|$)")


@cache
def verbs(name: str) -> frozenset[str]:
    """Return a list of words of `verbs.toml`."""
    return frozenset(table("verbs")[name].split())


@lru_cache(maxsize=4096)
def parts(word: str) -> tuple[str, ...]:
    """Return the words within a word, in lower case: `publishToMavenLocal`, `hex.publish`, `deploy-prod`."""
    return tuple(part.lower() for part in PART.findall(word[:120]))


@lru_cache(maxsize=1024)
def publishes(word: str) -> bool:
    """Tell whether a word in the place of a verb, or of a task, means that others get something."""
    if not WORD.match(word) or FILE.search(word) or word == "assets.deploy":
        return False
    said = parts(word)
    at = next((index for index, part in enumerate(said) if part in verbs("publishes")), None)
    if at is None:
        return not verbs("infrastructure").isdisjoint(said) and not {"upgrade", "destroy", "rollback"}.isdisjoint(said)
    behind = verbs("modest") if said[at] == "release" else verbs("modest_behind")
    if not verbs("modest").isdisjoint(said[:at]) or not behind.isdisjoint(said[at + 1 :]):
        return False
    return said[at] != "release" or at in (0, len(said) - 1) or not verbs("publishes").isdisjoint(said[at + 1 :])


def fetches(word: str) -> bool:
    """Tell whether a word in the place of a verb means that something comes from elsewhere."""
    return bool(WORD.match(word)) and not verbs("fetches").isdisjoint((*parts(word)[:1], *parts(word)[-1:]))


def looks(word: str) -> bool:
    """Tell whether a word means that something is only shown."""
    return word.lower() in verbs("looks") or not verbs("looks").isdisjoint(parts(word)[:1])


def acts(words: list[str]) -> bool:
    """Tell whether words do something to what they name, and none of them says that all of it stays here."""
    said = {part for word in words for part in parts(word)}
    if "set" in words:
        said -= {"config", "env"}
    return not said.isdisjoint(verbs("acts")) and said.isdisjoint(verbs("stays"))


def stays(words: list[str]) -> bool:
    """Tell whether one of the words says that all of it stays here."""
    return any(not verbs("stays").isdisjoint(parts(word)) for word in words)


def destroys(words: list[str]) -> bool:
    """Tell whether one of the words loses what it names."""
    return any(not verbs("destroys").isdisjoint(parts(word)) or word == "db:schema:load" for word in words)


def task_of(path: str) -> str:
    """Return what the name of a script speaks of: no folder, no ending; nothing for what lies among tests."""
    folder, _, name = path.rpartition("/")
    if not {"test", "tests", "spec", "specs", "__tests__"}.isdisjoint(folder.split("/")):
        return ""
    return re.sub(r"\.\w{1,4}$", "", name)


def names_production(name: str, value: str) -> bool:
    """Tell whether a variable says that programs work on what people use: `RAILS_ENV=production`."""
    return bool(IN_PRODUCTION.search(value) and ENVIRONMENT.search(name))
