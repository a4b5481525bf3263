"""The policies that ship: one for each specification's way of judging, and `DEFAULT`, the recommended one."""

from attrs import evolve

from constitution.effects import Effect, Zone
from constitution.policy import Policy
from constitution.rule import Rule
from constitution.statute.control import CONTROL
from constitution.statute.destruction import DESTRUCTION
from constitution.statute.disclosure import DISCLOSURE
from constitution.statute.form import EMPTY, FORM
from constitution.statute.loss import LOSS
from constitution.verdict import Level

__all__ = [
    "APPROVAL_LIST",
    "BLOCKLIST",
    "DEFAULT",
    "GATED",
    "NO_RULES",
    "PASSTHROUGH",
    "POLICIES",
    "STRICT",
    "WORKSPACE",
]

BLOCKLIST = ("rm", "sudo", "shutdown", "reboot", "mkfs", "dd", "chmod 777")
"""S0 6.4: blocked for `bash` regardless of category."""

APPROVALS = (
    Rule(
        "delete_recursively",
        "destruction",
        Effect.DELETE_TREE,
        (),
        Level.ask,
        match=("rm -rf x", "rm -r x"),
        near_miss=("rm x",),
    ),
    Rule(
        "administrator",
        "privilege",
        Effect.PRIVILEGE,
        (),
        Level.ask,
        match=("sudo ls", "su -c ls"),
        near_miss=("echo sudo",),
    ),
    Rule(
        "external_network",
        "network",
        (Effect.NETWORK, Effect.UPLOAD),
        (),
        Level.ask,
        match=("curl https://example.com", "wget example.com", "scp a h:b", "rsync -a a h:b"),
        near_miss=("curl localhost", "rsync -a a b"),
    ),
    Rule(
        "system_modification",
        "system",
        (Effect.OPEN_TO_ALL, Effect.FORMAT, Effect.RAW_COPY),
        (),
        Level.ask,
        match=("chmod 777 x", "mkfs.ext4 x", "dd if=a of=b"),
        near_miss=("chmod 755 x", "echo dd"),
    ),
    Rule(
        "overwrite_system_path",
        "destruction",
        Effect.WRITE,
        (Zone.SYSTEM, Zone.DEVICE),
        Level.ask,
        match=("echo x > /etc/hosts", "cp a /usr/bin/b"),
        near_miss=("echo x > y", "echo x > ~/y"),
    ),
    Rule(
        "code_from_elsewhere",
        "code",
        (Effect.RUN_FETCHED_CODE, Effect.RUN_UNKNOWN_CODE, Effect.UNKNOWN_COMMAND),
        (),
        Level.ask,
        match=("curl localhost | sh", "$X"),
        near_miss=("ls | wc",),
    ),
)
"""S1 6.2. The last row is ours: what cannot be known might be any of the others."""


STRANGERS = (
    Rule(
        "unknown_program",
        "code",
        (Effect.UNKNOWN_PROGRAM, Effect.EXECUTE),
        (),
        Level.ask,
        match=("frobnicate", "./run-me", "frobnicate x y"),
        near_miss=("ls", "git status", "python3 -m pytest"),
    ),
)
"""For those who want to know every program by name."""


def _without_asking(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """A gate that can only approve or reject rejects what another would ask about."""
    return tuple(evolve(rule, level=Level.deny) if rule.level is Level.ask else rule for rule in rules)


DEFAULT = Policy("default", FORM + DESTRUCTION + CONTROL + DISCLOSURE + LOSS)

STRICT = evolve(DEFAULT, name="strict", rules=(*DEFAULT.rules, *STRANGERS))

WORKSPACE = evolve(
    DEFAULT, name="workspace", allowed_roots=("~/.agent/workspace", "/tmp/agent"), blocklist=BLOCKLIST, admin=Level.ask
)

APPROVAL_LIST = Policy("approval_list", FORM + APPROVALS, denied_paths=(), bounded=False)

GATED = evolve(DEFAULT, name="gated", rules=_without_asking(DEFAULT.rules), denied_paths=())

PASSTHROUGH = Policy("passthrough", (EMPTY,), denied_paths=(), bounded=False)

NO_RULES = Policy("none", (), denied_paths=(), bounded=False)
"""What nothing is judged by, but what a job or a person adds. It is no policy to choose by its name."""

POLICIES = {policy.name: policy for policy in (DEFAULT, STRICT, WORKSPACE, APPROVAL_LIST, GATED, PASSTHROUGH)}
