"""A protocol: one b-thread, beside the loop and without a change to it, that remembers across calls."""

from agent.vocabulary.events import GateApproved
from bp import BThreadBody, bthread, sync, where
from constitution import mentions

__all__ = ["nothing_leaves_after_a_secret"]

SENDERS = {"curl", "ftp", "git", "nc", "rsync", "scp", "ssh", "wget"}


@bthread
def nothing_leaves_after_a_secret() -> BThreadBody:
    """Once a secret was read, refuse every command that could carry it away."""
    yield sync(wait_for=where(GateApproved, reads_a_secret))
    yield sync(refuse=where(GateApproved, could_send), because="a secret was read earlier in this run")


def reads_a_secret(approved: GateApproved) -> bool:
    """Whether the action touches a file called .env, by whatever path."""
    used = [path.resolved for path in approved.facts.paths] + list(approved.facts.resolved.values())
    return any(path.endswith("/.env") for path in used)


def could_send(approved: GateApproved) -> bool:
    """Whether the action starts a program that talks to other machines."""
    return not SENDERS.isdisjoint(mentions(approved.facts.command or "").programs)
