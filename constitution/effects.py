"""The words of the statute: what a command can do (effects), and to what kind of place (zones)."""

from enum import Enum, auto

from attrs import frozen

from constitution.verdict import Evidence

UNKNOWN = "\0"
"""Stands in a word for the part that cannot be known."""


class Effect(Enum):
    """A kind of effect that a command would have."""

    READ = auto()
    LIST = auto()
    HANDLE = auto()  # a file is named to a program, which may do anything with it
    MENTION = auto()  # a path stands within code or a longer text that a program gets
    WRITE = auto()
    DELETE = auto()
    DELETE_TREE = auto()
    EXECUTE = auto()  # run a file that is already there
    RUN_UNKNOWN_CODE = auto()  # run text that cannot be known
    RUN_FETCHED_CODE = auto()  # run text that comes from the network or out of an encoding
    RISKY_CODE = auto()  # inline code of another language that deletes, writes or starts programs
    UNKNOWN_COMMAND = auto()  # a word in command position that cannot be known
    UNKNOWN_PROGRAM = auto()  # a literal program that no table knows
    UNDESCRIBED = auto()  # a subcommand that no table describes
    UNREADABLE = auto()  # text that cannot be parsed, or that parsers are known to misread
    EMPTY = auto()
    NETWORK = auto()
    UPLOAD = auto()
    LEAK = auto()  # something private is sent
    REMOTE_SHELL = auto()
    GIVE_SHELL = auto()  # another machine gets a shell here
    LISTEN = auto()
    ESCAPE_SHELL = auto()  # an interactive shell, out of a program that is no shell
    PRIVILEGE = auto()
    POWER = auto()
    FORMAT = auto()  # file systems, partitions, whole disks
    RAW_COPY = auto()  # dd, wherever it writes
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
    KILL_MATCHING = auto()  # processes that are told by a pattern or a port
    REVERSE_TUNNEL = auto()  # another machine gets a way in
    SCHEDULE = auto()  # cron, at: something that runs later
    FORK_BOMB = auto()
    EXHAUST = auto()
    PACKAGES = auto()  # the system's packages
    FOREIGN_PACKAGES = auto()  # packages from an address given on the command line, or for every user
    PACKAGES_LOSS = auto()  # packages that the system cannot do without
    HISTORY_LOSS = auto()  # version control forgets work
    HISTORY_GONE = auto()  # and forgets how to get it back
    SHARED_HISTORY_LOSS = auto()  # and a remote, which others use, forgets it
    DISCARD = auto()  # what a file holds is replaced by what version control has
    MAIN_HISTORY_LOSS = auto()  # and a remote forgets it on the branch that all others come from
    PUBLISH = auto()
    PUSH = auto()  # commits go to the remote of a repository
    INSTALL = auto()  # packages that the command names, for this project
    CONTAINER_ESCAPE = auto()
    CONTAINER_LOSS = auto()
    CLOUD_CHANGE = auto()
    CLOUD_LOSS = auto()
    DATABASE_LOSS = auto()
    SHOW_ENVIRONMENT = auto()
    SHOW_SECRETS = auto()
    TAKE_KEYS = auto()  # private keys and passwords leave the place that guards them
    COVER_TRACKS = auto()
    CONFIGURE_TOOL = auto()  # settings that make a later everyday command run something else
    PRELOAD = auto()
    CARRIED = auto()  # an option or a variable names a file or folder with settings or code
    SEARCH_PATH = auto()  # programs are looked for in a folder first
    READ_TREE = auto()  # everything below a folder
    DISARM = auto()  # what guards or records the machine is switched off
    WEAKEN = auto()  # a tool no longer checks whom it talks to
    TRUST = auto()  # the machine trusts a new user or key
    ATTACK = auto()  # tools whose one use is to attack, or to earn with the machine of another owner
    SPY = auto()  # the screen, the keys, the microphone
    PERSIST = auto()  # something runs at every start
    FILL = auto()  # disk or memory, without end
    HUNT = auto()  # secrets are searched for everywhere
    SHARE_TREE = auto()  # everything below a folder is offered to others
    SHOW_PERSONAL = auto()  # what the user typed or copied
    RUN_CLONED_CODE = auto()  # a tool runs what was cloned a moment ago
    CONTAINER_DATA_LOSS = auto()  # volumes, or everything that runs in containers
    CLOUD_EXPOSURE = auto()  # access for everyone, or all rights for one
    ACT_AS_USER = auto()  # types where the user does, decides in the user's place, or ends the agent that would ask
    DATABASE_RESET = auto()  # the database of a project is emptied by its own tool


class Zone(Enum):
    """The kind of place that a path is in; `NOWHERE` is for effects without a path."""

    NOWHERE = auto()
    WORKSPACE = auto()
    WORKSPACE_ROOT = auto()  # the folder itself, with the history in it
    WORKSPACE_CONTENT = auto()  # what a `*` in it stands for
    VERSION_CONTROL = auto()  # .git and its like in the workspace
    PRIVATE = auto()  # .env, keys: secrets of the project
    PRIVATE_OUTSIDE = auto()  # the same elsewhere
    SCRATCH = auto()
    SCRATCH_ROOT = auto()
    HOME = auto()
    HOME_ROOT = auto()
    HOME_PROGRAMS = auto()  # what the user installed there: ~/.local/bin, ~/.cargo/bin
    KEEPS_SECRETS = auto()  # folders of the home folder that hold secrets besides other things
    STARTUP = auto()  # files of the home folder that run at login
    AUTOSTART = auto()  # what is put there is started at login, or by git, or by Python
    SYSTEM = auto()
    DEVICE = auto()
    SINK = auto()  # /dev/null, /dev/stdout, /dev/tcp is not one
    NETWORK_DEVICE = auto()  # /dev/tcp, /dev/udp
    SECRET = auto()  # credentials of the user and the system
    DENIED = auto()  # a denied path of the policy
    OWN = auto()  # the agent's own things: its runs, rules and keys, the log in use
    PROGRAM = auto()  # the agent's own program: packages that may be read
    OUTSIDE = auto()
    PARTLY_KNOWN = auto()  # the folder is in the workspace or scratch, what follows is not known
    UNKNOWN = auto()


NO_EVIDENCE = Evidence("")


@frozen
class Finding:
    """A command would have this effect on this path; `says` completes "<program> would ...".

    `invocation` is the command of the call that it comes from, all words known and as written; empty for what stands
    in scripts within it, and for what redirections and assignments do.
    """

    effect: Effect
    path: str = ""
    says: str = ""
    program: str = ""
    evidence: Evidence = NO_EVIDENCE
    invocation: tuple[str, ...] = ()


@frozen
class Deed:
    """One effect of an action on one path: for callers that compare several calls, and judge none.

    `words` are those of the simple command that has it, as in `Finding.invocation`; `program` is its program.
    """

    effect: Effect
    path: str  # absolute where it is known, empty for effects without one
    zone: Zone
    program: str = ""
    words: tuple[str, ...] = ()
