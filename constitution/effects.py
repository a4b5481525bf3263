"""The vocabulary of rules: the effects of a command, and the kinds of places (zones)."""

from enum import Enum, auto
from typing import NamedTuple

from attrs import frozen

from constitution.verdict import Evidence

UNKNOWN = "\0"
"""Placeholder in a word for a part that cannot be known."""


class Effect(Enum):
    """A kind of effect that a command would have."""

    __hash__ = object.__hash__  # members are single objects, and are looked up for every finding

    READ = auto()
    LIST = auto()
    HANDLE = auto()  # a file is an argument of a program with unknown effects
    MENTION = auto()  # a path is in code, or in a longer text, for a program
    WRITE = auto()
    DELETE = auto()
    DELETE_TREE = auto()
    EXECUTE = auto()  # run a file that is already there
    RUN_UNKNOWN_CODE = auto()  # run text that cannot be known
    RUN_FETCHED_CODE = auto()  # run text that was downloaded or decoded
    RISKY_CODE = auto()  # inline code of another language that deletes, writes or starts programs
    UNKNOWN_COMMAND = auto()  # a word in command position that cannot be known
    UNKNOWN_PROGRAM = auto()  # a literal program that no table knows
    UNDESCRIBED = auto()  # a subcommand that no table describes
    UNREADABLE = auto()  # text that cannot be parsed, or that parsers are known to misread
    EMPTY = auto()
    NETWORK = auto()
    UPLOAD = auto()
    LEAK = auto()  # private data is sent
    REMOTE_SHELL = auto()
    GIVE_SHELL = auto()  # another machine gets a shell here
    LISTEN = auto()
    ESCAPE_SHELL = auto()  # an interactive shell, from a program that is not a shell
    PRIVILEGE = auto()
    POWER = auto()
    FORMAT = auto()  # file systems, partitions, whole disks
    RAW_COPY = auto()  # dd, to any file
    MOUNT = auto()
    PERMISSIONS = auto()
    OPEN_TO_ALL = auto()  # chmod 777 and its spellings
    SETUID = auto()
    ACCOUNTS = auto()
    SERVICES = auto()
    KERNEL = auto()
    FIREWALL = auto()
    KILL = auto()
    KILL_ALL = auto()
    KILL_MATCHING = auto()  # processes selected by a pattern or a port
    REVERSE_TUNNEL = auto()  # another machine can connect to this one
    SCHEDULE = auto()  # cron, at: deferred commands
    FORK_BOMB = auto()
    EXHAUST = auto()
    PACKAGES = auto()  # the system's packages
    FOREIGN_PACKAGES = auto()  # packages from an address given on the command line, or for every user
    PACKAGES_LOSS = auto()  # packages that the system needs
    HISTORY_LOSS = auto()  # uncommitted work is lost
    HISTORY_GONE = auto()  # and the means to restore it
    SHARED_HISTORY_LOSS = auto()  # on a remote, which others use
    MAIN_HISTORY_LOSS = auto()  # on the main branch of a remote
    PUBLISH = auto()
    PUSH = auto()  # commits go to the remote of a repository
    FETCH = auto()  # what the project's own files name comes from the network: nothing to ask about but a right
    INSTALL = auto()  # packages that the command names, for this project
    CONTAINER_ESCAPE = auto()
    CONTAINER_LOSS = auto()
    CLOUD_CHANGE = auto()
    CLOUD_LOSS = auto()
    DATABASE_LOSS = auto()
    SHOW_ENVIRONMENT = auto()
    SHOW_SECRETS = auto()
    TAKE_KEYS = auto()  # private keys and passwords leave their protected store
    COVER_TRACKS = auto()
    CONFIGURE_TOOL = auto()  # settings that make later commands run another program
    PRELOAD = auto()
    CARRIED = auto()  # an option or a variable names a file or folder with settings or code
    SEARCH_PATH = auto()  # a folder is put first on the search path
    READ_TREE = auto()  # everything below a folder
    DISARM = auto()  # security services or logs are switched off
    WEAKEN = auto()  # a tool no longer verifies its peer
    TRUST = auto()  # the machine trusts a new user or key
    ATTACK = auto()  # attack tools, and cryptocurrency miners
    SPY = auto()  # the screen, the keys, the microphone
    PERSIST = auto()  # a program runs at every start
    FILL = auto()  # disk or memory, without end
    HUNT = auto()  # secrets are searched for everywhere
    SHARE_TREE = auto()  # everything below a folder is served to others
    SHOW_PERSONAL = auto()  # command history and clipboard
    RUN_CLONED_CODE = auto()  # a tool runs code that was just downloaded
    CONTAINER_DATA_LOSS = auto()  # volumes, or all containers
    CLOUD_EXPOSURE = auto()  # access for all users, or all rights for one
    ACT_AS_USER = auto()  # types or decides in the user's place, or ends the agent
    DATABASE_RESET = auto()  # the database of a project is emptied by its own tool


class Zone(Enum):
    """The kind of place of a path; `NOWHERE`: for effects without a path."""

    __hash__ = object.__hash__

    NOWHERE = auto()
    WORKSPACE = auto()
    WORKSPACE_ROOT = auto()  # the folder itself, with the history in it
    WORKSPACE_CONTENT = auto()  # the matches of a `*` in it
    VERSION_CONTROL = auto()  # .git and its like in the workspace
    RUNS_LATER = auto()  # files of the workspace that editors, agents and shells run or obey later
    PRIVATE = auto()  # .env, keys: secrets of the project
    PRIVATE_OUTSIDE = auto()  # the same elsewhere
    SCRATCH = auto()
    SCRATCH_ROOT = auto()
    HOME = auto()
    HOME_ROOT = auto()
    HOME_PROGRAMS = auto()  # programs installed by the user: ~/.local/bin, ~/.cargo/bin
    KEEPS_SECRETS = auto()  # folders of the home folder that hold secrets besides other things
    STARTUP = auto()  # files of the home folder that run at login
    AUTOSTART = auto()  # files there are started at login, by git, or by Python
    SYSTEM = auto()
    DEVICE = auto()
    SINK = auto()  # /dev/null, /dev/stdout, /dev/tcp is not one
    NETWORK_DEVICE = auto()  # /dev/tcp, /dev/udp
    SECRET = auto()  # credentials of the user and the system
    DENIED = auto()  # a denied path of the policy
    OWN = auto()  # the agent's own files: its runs, rules and keys, the log in use
    PROGRAM = auto()  # the agent's own program: packages that may be read
    OUTSIDE = auto()
    PARTLY_KNOWN = auto()  # an unknown path below the workspace or scratch
    UNKNOWN = auto()


NO_EVIDENCE = Evidence("")


class Finding(NamedTuple):
    """A command would have this effect on this path; `says` completes "<program> would ...".

    `invocation`: the command of the call that has it, if all its words are known and as written; empty within nested
    scripts, and for redirections and assignments. `repository`: the one whose history or work it would lose.
    """

    effect: Effect
    path: str = ""
    says: str = ""
    program: str = ""
    evidence: Evidence = NO_EVIDENCE
    invocation: tuple[str, ...] = ()
    repository: str = ""


@frozen
class Deed:
    """One effect of an action on one path, for callers that compare several calls.

    `words`: the simple command that has it, as in `Finding.invocation`; `program`: its program.
    """

    effect: Effect
    path: str  # absolute if known, empty for effects without one
    zone: Zone
    program: str = ""
    words: tuple[str, ...] = ()
