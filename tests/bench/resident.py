"""How much memory this process takes. It imports nothing, so that asking costs nothing."""

__all__ = ["STATUS", "resident"]

STATUS = "/proc/self/status"  # Linux


def resident() -> int:
    """Return how many bytes of this process are in memory."""
    with open(STATUS) as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
