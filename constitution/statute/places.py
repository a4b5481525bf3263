"""The zones that rules name together."""

from constitution.effects import Zone as Z

__all__ = ["ANYWHERE", "BEYOND", "CRITICAL", "NEARBY", "UNCLEAR"]

ANYWHERE: tuple[Z, ...] = ()
CRITICAL = (Z.SYSTEM, Z.DEVICE, Z.SECRET, Z.HOME_ROOT)
NEARBY = (Z.HOME, Z.OUTSIDE, Z.STARTUP, Z.PRIVATE)
BEYOND = (Z.SYSTEM, Z.DEVICE, Z.SECRET, Z.HOME_ROOT, Z.HOME, Z.OUTSIDE, Z.STARTUP)
UNCLEAR = (Z.UNKNOWN,)
