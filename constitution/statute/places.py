"""The zones that rules name together."""

from constitution.effects import Zone

__all__ = ["BEYOND", "CRITICAL"]

CRITICAL = (Zone.SYSTEM, Zone.DEVICE, Zone.SECRET, Zone.HOME_ROOT)
BEYOND = (*CRITICAL, Zone.HOME, Zone.KEEPS_SECRETS, Zone.OUTSIDE, Zone.PRIVATE_OUTSIDE, Zone.STARTUP, Zone.AUTOSTART)
