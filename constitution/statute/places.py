"""The zones that rules name together."""

from constitution.effects import Zone

__all__ = ["ANYWHERE", "BEYOND", "CRITICAL", "NEARBY", "UNCLEAR"]

ANYWHERE: tuple[Zone, ...] = ()
CRITICAL = (Zone.SYSTEM, Zone.DEVICE, Zone.SECRET, Zone.HOME_ROOT)
NEARBY = (Zone.HOME, Zone.OUTSIDE, Zone.STARTUP, Zone.PRIVATE)
BEYOND = (Zone.SYSTEM, Zone.DEVICE, Zone.SECRET, Zone.HOME_ROOT, Zone.HOME, Zone.OUTSIDE, Zone.STARTUP)
UNCLEAR = (Zone.UNKNOWN,)
