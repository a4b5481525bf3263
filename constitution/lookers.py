"""Which programs only look: what they do can be undone by forgetting it. All others may have side effects."""

import re

from constitution.wrapper import SHELLS
from constitution.wrappers import WRAPPERS

__all__ = ["only_looks"]

LOOKERS = frozenset(
    """
    ls cat head tail less more wc sort uniq cut paste join comm column fold fmt expand nl tac rev tr awk gawk mawk sed
    grep egrep fgrep rg ag ack fd find locate tree stat file du df free ps top htop pgrep pidof pstree uname whoami id
    groups users who w last date cal pwd echo printf test [ [[ true false : which type command whereis man info help
    env printenv history diff cmp sdiff md5sum sha1sum sha224sum sha256sum sha384sum sha512sum shasum b2sum cksum sum
    xxd od hexdump hd strings jq yq gojq jaq xmllint csvcut csvlook mlr xsv basename dirname realpath readlink seq sleep
    wait jobs uptime lscpu lsblk lsusb lspci lsmod lsof ss netstat nproc hostname locale getent tput clear read mapfile
    readarray cd pushd popd dirs export declare typeset local readonly unset set shopt alias exit return break continue
    getopts hash times umask expr bc dc factor numfmt cloc tokei scc bat batcat zcat bzcat xzcat zless zgrep nm objdump
    readelf ldd size xargs parallel shuf tsort look ts pv dmesg journalctl squeue sinfo sacct qstat bjobs nvidia-smi
    apt-cache sw_vers vmstat iostat base64 base32 openssl python python3 node perl ruby exec eval source . trap
    """.split()  # noqa: SIM905
)
"""Those of them that also write have a finding when they do."""

SUBCOMMANDS = {
    "git": r"status|log|diff|show|blame|annotate|ls-files|ls-tree|ls-remote|rev-parse|rev-list|describe|shortlog"
    r"|cat-file|grep|check-ignore|merge-base|name-rev|for-each-ref|count-objects|whatchanged|cherry|show-ref|var|version|help"
    r"|diff-tree|diff-index|diff-files|range-diff"
    r"|(stash|notes) (list|show)|reflog( show.*)?$|worktree list"
    r"|submodule status|remote( -v| show .*| get-url .*)?$|branch( (-[avrl]+|--\w[\w-]*(=\S+)?))*$"
    r"|tag( (-l|--list|-n)( .*)?)?$"
    r"|config (--get|--list|-l|get|list)|bisect (log|view)|sparse-checkout list",
    "docker": r"(compose )?(ps|images|logs|top|version|config|ls|port|events|stats)|inspect|info|history|diff|search"
    r"|(container|image|volume|network|context|service|node|stack|buildx) (ls|list|inspect|logs|top|history|ps|show)"
    r"|system (df|info)",
    "docker-compose": r"ps|images|logs|top|version|config|ls|port",
    "podman": r"ps|images|logs|inspect|top|version|info|history|diff|stats",
    "kubectl": r"get|describe|logs|top|explain|api-resources|api-versions|version|cluster-info|diff|events"
    r"|config (view|current-context|get-contexts|get-clusters)|auth (can-i|whoami)|rollout (status|history)",
    "helm": r"list|ls|status|history|get|show|template|lint|search|version|env",
    "terraform": r"plan|validate|show|output|providers|version|graph|state (list|show)|workspace (list|show)",
    "npm": r"ls|list|view|info|show|outdated|explain|why|root|bin|prefix|search|whoami|config (get|list|ls)",
    "yarn": r"list|why|info|outdated",
    "pnpm": r"ls|list|why|outdated",
    "pip": r"list|show|freeze|check|index|debug",
    "cargo": r"tree|metadata|search|version",
    "go": r"list|env|version|doc|vet",
    "gh": r"(pr|issue|run|repo|release|workflow|gist|label) (list|view|status|diff|checks|watch)|auth status|search",
    "aws": r"\S+ (describe|list|get)-\S+|s3 ls|configure list|sts get-caller-identity|help",
    "gcloud": r".*\b(list|describe)|config list|version|info",
    "az": r".*\b(list|show)|version",
    "systemctl": r"(--user )?(status|show|cat|is-active|is-enabled|is-failed|list-\S+)",
    "apt": r"list|show|search|policy|depends",
    "brew": r"list|info|search|deps|outdated|config",
    "crontab": r"-l",
    "dpkg": r"-[lLsS]|--list|--status|--listfiles",
    "rpm": r"-q\w*|--query",
    "tar": r"-?[a-z]*t[a-z]*|--list",
    "unzip": r"-[lv]+|-Z.*",
    "7z": r"l",
    "ip": r"(-\S+ )*(a|addr|address|r|route|l|link|n|neigh)( (show|list|ls)( .*)?)?$",
    "tmux": r"ls|list-\S+|show-\S+",
    "scontrol": r"show|ping",
    "conda": r"list|info|env list|search",
}
PATTERNS = {name: re.compile(rf"(?:{pattern})(?:\s|$)") for name, pattern in SUBCOMMANDS.items()}
ASKS = frozenset(["--version", "--help", "-V"])


def only_looks(argv: tuple[str, ...]) -> bool:
    """Tell whether a command, by its program and what it is told, only looks; wrappers are as what they run."""
    name = argv[0].rpartition("/")[2]
    if name in LOOKERS or name in SHELLS or _runs_another(name, argv) or (len(argv) == 2 and argv[1] in ASKS):
        return True
    pattern = PATTERNS.get(name)
    return pattern is not None and pattern.match(" ".join(_without_settings(name, argv[1:]))) is not None


def _runs_another(name: str, argv: tuple[str, ...]) -> bool:
    """Tell whether a command is as harmless as the one that it runs, which is asked about by itself."""
    wrapper = WRAPPERS.get(name)
    first = next((word for word in argv[1:] if not word.startswith("-")), "")
    return wrapper is not None and (not wrapper.only or first in wrapper.only)


def _without_settings(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words behind the options that stand before a subcommand: `git -C x status`, `kubectl -n y get`."""
    index = 0
    while name in ("git", "kubectl", "docker", "aws", "gcloud") and index < len(words) and words[index][:1] == "-":
        index += 2 if words[index] in TAKES else 1
    return words[index:]


TAKES = frozenset("-C -c -n --namespace --context -f --file --profile --region -H -p --project".split())  # noqa: SIM905
