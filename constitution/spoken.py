"""What the words of a command speak of, taken apart: `release:perform`, `publishToMavenLocal`, `deploy-prod.sh`."""

import re
from functools import lru_cache

__all__ = [
    "PRODUCTION",
    "acts",
    "destroys",
    "fetches",
    "looks",
    "names_production",
    "parts",
    "publishes",
    "stays",
    "task_of",
]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

PUBLISHES = _set(
    """
    publish republish unpublish deploy redeploy undeploy upload submit promote trigger ship rollout backfill push
    distribute broadcast release apply dispatch reconcile
    """
)
"""Verbs by which programs hand something to others, or set something off elsewhere."""

MODEST = _set(
    """
    local dry draft notes note test tests spec check checks build builds lint pre prepare package pack bundle assemble
    compile install generate make plan preview validate verify diff list status log logs config changelog version docs
    snapshot simulate mock dev watch clean info help minify lock format types gen
    """
)
"""Parts of a word that say that all of it stays here: `publish-local`, `build-release`, `release-notes`."""

MODEST_BEHIND = _set(
    "local dry draft notes note check checks test tests spec config list status log logs preview plan diff changelog"
    " candidate simulate mock dev help info"
)
"""Those that say so behind a verb too: `publish-package-version` does publish."""

INFRASTRUCTURE = _set("tf terraform tofu helm k8s kube kubectl kubernetes infra ansible aws gcp azure pulumi cdk")

LOOKS = _set(
    """
    list ls show status get describe view log logs diff plan preview validate lint check test help history info inspect
    search find render template doctor version whoami watch tail wait emulate dev serve explain verify notes lanes
    schema types runs ps images stats query tag
    """
)
"""Words behind or before which a verb is only asked about: `rollout status`, `list release`."""

STAYS = (LOOKS - _set("schema types runs search find render")) | _set(
    """
    build compile precompile assets package synth lint typecheck routes install collectstatic cache config dump
    autoload generate docs clean bundle pull init fmt format env ci logs dry current outputs output start worker tests
    spec make
    """
)
"""Words with which work that names production touches nothing of it."""

ACTS = _set(
    """
    migrate migrations migration upgrade downgrade up down seed runner console shell seeds dbshell apply sync import
    load
    loaddata restore restart exec execute invoke backfill rollback reset drop set put push scale update patch create
    delete remove flush fresh refresh reindex createsuperuser changepassword send select use switch activate
    wipe truncate purge destroy promote stop enable disable grant revoke rotate run repair baseline tinker operation
    snapshot evolve commit replace move copy sql c edit runscript
    """
)
"""Words that do something to what they name."""

DESTROYS = _set("drop reset flush wipe fresh refresh truncate purge destroy delete downgrade clean sqlflush nuke erase")
SETTINGS = _set("config env")
PRODUCTION = _set("prod production staging prd stg preprod preproduction")
FETCHES = _set("download downloader dl")

WORD = re.compile(r"^[@+:_]*\.?[A-Za-z][\w:.+@-]*$")
FILE = re.compile(
    r"\.(py|sh|js|ts|mjs|md|rst|ya?ml|json|toml|tgz|zip|txt|tar|gz|whl|apk|aab|ipa|html|css|go|rs|rb|php|java|lock|cfg"
    r"|ini|conf|sql|csv|ipynb|log|xml|deb|rpm|c|h|cpp|tf|tfvars|exs?|feature|com|org|net|io|dev|app)$"
)

ENVIRONMENT = re.compile(
    r"(?i)(env|environment|stage|settings_module|profile|context|target|stack|database_url|_url|_uri|host|config)$"
)
IN_PRODUCTION = re.compile(r"(?i)(^|[^a-z])(prod|production|staging|live|prd|stg|preprod)([^a-z]|$)")


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
    at = next((index for index, part in enumerate(said) if part in PUBLISHES), None)
    if at is None:
        return not INFRASTRUCTURE.isdisjoint(said) and not {"upgrade", "destroy", "rollback"}.isdisjoint(said)
    behind = MODEST if said[at] == "release" else MODEST_BEHIND
    if not MODEST.isdisjoint(said[:at]) or not behind.isdisjoint(said[at + 1 :]):
        return False
    return said[at] != "release" or at in (0, len(said) - 1) or not PUBLISHES.isdisjoint(said[at + 1 :])


def fetches(word: str) -> bool:
    """Tell whether a word in the place of a verb means that something comes from elsewhere."""
    return bool(WORD.match(word)) and not FETCHES.isdisjoint((*parts(word)[:1], *parts(word)[-1:]))


def looks(word: str) -> bool:
    """Tell whether a word means that something is only shown."""
    return word.lower() in LOOKS or not LOOKS.isdisjoint(parts(word)[:1])


def acts(words: list[str]) -> bool:
    """Tell whether words do something to what they name, and none of them says that all of it stays here."""
    said = {part for word in words for part in parts(word)}
    if "set" in words:
        said -= SETTINGS
    return not said.isdisjoint(ACTS) and said.isdisjoint(STAYS)


def stays(words: list[str]) -> bool:
    """Tell whether one of the words says that all of it stays here."""
    return any(not STAYS.isdisjoint(parts(word)) for word in words)


def destroys(words: list[str]) -> bool:
    """Tell whether one of the words loses what it names."""
    return any(not DESTROYS.isdisjoint(parts(word)) or word == "db:schema:load" for word in words)


def task_of(path: str) -> str:
    """Return what the name of a script speaks of: no folder, no ending; nothing for what lies among tests."""
    folder, _, name = path.rpartition("/")
    if not {"test", "tests", "spec", "specs", "__tests__"}.isdisjoint(folder.split("/")):
        return ""
    return re.sub(r"\.\w{1,4}$", "", name)


def names_production(name: str, value: str) -> bool:
    """Tell whether a variable says that programs work on what people use: `RAILS_ENV=production`."""
    return bool(IN_PRODUCTION.search(value) and ENVIRONMENT.search(name))
