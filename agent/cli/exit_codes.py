"""The exit codes of all commands."""

OK, FAILED, USAGE, LIMIT, DIFFERENT, UNREACHED = 0, 1, 2, 3, 6, 7

STATUSES = {
    "completed": OK,
    "failed": FAILED,
    "doom_loop": FAILED,
    "limit": LIMIT,
    "stopped": 4,
    "waiting": 5,
    "aborted": 130,
}

LEVELS = {"allow": 0, "ask": 10, "deny": 11}
"""The exit codes of `check`."""


MISSED_OBJECTIVE = ("partial", "failure")
"""The statuses that an agent declares for an objective that it did not reach."""


def of_run(status: str, signal: int | None = None, reason: str = "") -> int:
    """Return the exit code of a run that ended with `status` and `reason`; `signal` is what aborted it, if any did."""
    if status == "aborted" and signal is not None:
        return of_signal(signal)
    if status == "completed" and reason in MISSED_OBJECTIVE:
        return FAILED
    return STATUSES.get(status, FAILED)


def of_signal(number: int) -> int:
    """Return the exit code of a process that a signal ended, as shells count."""
    return 128 + number
