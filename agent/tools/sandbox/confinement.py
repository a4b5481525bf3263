"""A confinement: what one command may do, whichever program of the system keeps it there."""

from attrs import frozen

__all__ = ["SERVERS", "Confinement"]

SERVERS = (
    "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "TMUX",
    "TMUX_PANE", "STY", "KITTY_LISTEN_ON", "KITTY_PID", "WEZTERM_UNIX_SOCKET", "DOCKER_HOST", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables that lead to servers of the user: agents for keys, the screen, terminals, containers."""


@frozen
class Confinement:
    """The permissions of one command. All paths are absolute, with links followed, and exist.

    cwd: where it starts. writable: the workspace and its like. scratch: what stands for /tmp. readable: what may be
    read though it lies in what is replaced. hidden: what is not there. granted: what may be written for this one call,
    whatever is hidden. kept: what in it is read only nevertheless. network: hosts can be reached. egress: the folder
    of a proxy through which some can. joined: it is in the
    network of the agent already, which has a loopback alone.
    """

    cwd: str
    scratch: str
    writable: tuple[str, ...]
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    network: bool = False
    joined: bool = False
    egress: str = ""
