"""Egress: gives a call access to granted hosts only, through a proxy that lives as long as the call.

    python egress.py outside FOLDER HOSTS -- BWRAP ... -- python FOLDER/egress.py inside FOLDER -- COMMAND

The outer process is in the machine's network and listens on a socket in FOLDER, which only this call sees; it connects
to the granted hosts. The inner one, in a network with only a loopback, forwards connections to the proxy named in the
usual variables. Programs that use no proxy reach nothing. Other commands of the agent share the loopback, so the proxy
requires the key of the call, from these variables and FOLDER. A name that resolves to a loopback or link-local address
is refused, unless that address itself was granted.
"""

import ctypes
import fcntl
import hmac
import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from urllib.parse import SplitResult, urlsplit

FOLDER = "/run/egress"
"""The path of a call's folder inside the cell."""

SOCKET, SCRIPT, KEY, PR_SET_PDEATHSIG = "socket", "egress.py", "key", 1
LONGEST_HEAD = 65536  # bytes
SECONDS = 20.0  # for a connection
TO_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
PAST_IT = ("NO_PROXY", "no_proxy")
VARIABLES = frozenset((*TO_PROXY, *PAST_IT))
"""The variables that differ for each call."""


def words_outside(folder: str, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words before the confining command of a call that may reach these hosts."""
    return (sys.executable, "-I", "-S", __file__, "outside", folder, ",".join(hosts), "--")


def words_inside() -> tuple[str, ...]:
    """Return the words before the call's own command."""
    return (sys.executable, "-I", "-S", os.path.join(FOLDER, SCRIPT), "inside", FOLDER, "--")


def run_outside(folder: str, hosts: frozenset[str], argv: list[str]) -> int:
    """Run the confined command beside its proxy; return its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # the command gets the signal too; clean up after its end
    os.mkdir(folder, 0o700)
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)  # until this process ends: see `TemporaryFolder`
    key = f"call:{os.urandom(16).hex()}"
    try:
        with open(os.path.join(folder, KEY), "x") as file:
            file.write(key)
        shutil.copy(__file__, os.path.join(folder, SCRIPT))  # this file may be hidden inside
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(folder, SOCKET))
            server.listen(64)
            _in_background(lambda: _serve(server, lambda client: _let_through(client, hosts, key)))
            # A session gets descriptors; with a folder it is not started by posix_spawn, which ignores two signals.
            code = subprocess.call(argv, close_fds=False, cwd=os.curdir, env=given_environment())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def run_inside(folder: str, argv: list[str]) -> None:
    """Start the forwarder to the proxy, which ends with this process, and become the command."""
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    with open(os.path.join(folder, KEY)) as file:
        address = f"http://{file.read()}@127.0.0.1:{server.getsockname()[1]}"
    command = os.getpid()
    if os.fork() == 0:
        _end_with(command)
        os.closerange(0, server.fileno())  # else the command's output would stay open
        _serve(server, lambda client: _pass_on(client, os.path.join(folder, SOCKET)))
    server.close()
    to_proxy = {**dict.fromkeys(TO_PROXY, address), **dict.fromkeys(PAST_IT, "localhost,127.0.0.1")}
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    os.execvpe(argv[0], argv, {**given_environment(), **to_proxy})


def given_environment() -> dict[str, str]:
    """Return the environment from before Python set LC_CTYPE, as it does in the C locale. Raises OSError."""
    with open("/proc/self/environ", "rb") as file:
        entries = os.fsdecode(file.read()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent has ended, also by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the request
        os._exit(0)


def _serve(server: socket.socket, handle: Callable[[socket.socket], None]) -> None:
    while True:
        client, _ = server.accept()
        _in_background(partial(_handled, client, handle))


def _handled(client: socket.socket, handle: Callable[[socket.socket], None]) -> None:
    with client, suppress(OSError, ValueError):
        handle(client)


def _pass_on(client: socket.socket, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as proxy:
        proxy.connect(path)
        _join(client, proxy)


def _let_through(client: socket.socket, hosts: frozenset[str], key: str) -> None:
    """Read one request of a proxy's client, and connect it with a granted host. Raises OSError, ValueError."""
    head, rest = _head_of(client)
    lines = head.decode("latin-1").split("\r\n")
    if not _knows(key, lines[1:]):
        _refuse(client, "407 Proxy Authentication Required", "the key of the call is missing", 'Basic realm="sandbox"')
        return
    method, target, version = lines[0].split()
    url = urlsplit(f"//{target}" if method == "CONNECT" else target)
    host, port = (url.hostname or "").rstrip("."), url.port or 80
    if host not in hosts or url.scheme not in ("", "http"):
        _refuse(client, "403 Forbidden", f"{host} was not granted")
        return
    try:
        upstream = _connect(host, port)
    except OSError as error:
        _say(client, "502 Bad Gateway", f"{host} cannot be reached: {error.strerror or error}")
        return
    if upstream is None:
        _refuse(client, "403 Forbidden", f"{host} has no address that may be reached")
        return
    with upstream:
        upstream.settimeout(None)
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            upstream.sendall(rest)
        else:
            upstream.sendall(_own_head(f"{method} {url.path or '/'}", url, version, lines[1:]) + rest)
        _join(client, upstream)


def _own_head(verb: str, url: SplitResult, version: str, headers: list[str]) -> bytes:
    """Return the head of a request in the form for the host itself."""
    query = f"?{url.query}" if url.query else ""
    kept = (header for header in headers if not header.lower().startswith(("proxy-", "connection:", "host:")))
    own = (f"{verb}{query} {version}", f"Host: {url.netloc.rpartition('@')[2]}", "Connection: close")
    return "\r\n".join((*own, *kept, "", "")).encode("latin-1")


def _knows(key: str, headers: list[str]) -> bool:
    given = [
        header.partition(":")[2].strip() for header in headers if header.lower().startswith("proxy-authorization:")
    ]
    wanted = f"Basic {b64encode(key.encode()).decode()}"
    return len(given) == 1 and hmac.compare_digest(given[0].encode(), wanted.encode())


def _refuse(client: socket.socket, status: str, why: str, challenge: str = "") -> None:
    _say(client, status, f"blocked by the sandbox: network; {why}", challenge)


def _say(client: socket.socket, status: str, text: str, challenge: str = "") -> None:
    said = f"{text}\n".encode()
    asks = f"Proxy-Authenticate: {challenge}\r\n" if challenge else ""
    head = f"HTTP/1.1 {status}\r\n{asks}Connection: close\r\nContent-Length: {len(said)}\r\n\r\n"
    client.sendall(head.encode() + said)


def _head_of(client: socket.socket) -> tuple[bytes, bytes]:
    """Read the head of a request; return it, and the data after it. Raises ValueError for an invalid one."""
    content = b""
    while b"\r\n\r\n" not in content:
        piece = client.recv(LONGEST_HEAD)
        content += piece
        if not piece or len(content) > LONGEST_HEAD:
            raise ValueError("no request")
    head, _, rest = content.partition(b"\r\n\r\n")
    return head, rest


def _connect(host: str, port: int) -> socket.socket | None:
    """Return a connection with a host; None if none of its addresses is permitted. Raises OSError."""
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    address = next((address for address in found if address == host or not _is_close(address)), None)
    return None if address is None else socket.create_connection((address, port), SECONDS)


def _is_close(address: str) -> bool:
    """Return whether an address is loopback or link-local, where services trust every client."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast


def _join(one: socket.socket, other: socket.socket) -> None:
    """Forward data between two sockets in both directions, until both have ended."""
    back = _in_background(lambda: _carry(other, one))
    _carry(one, other)
    back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _in_background(work: Callable[[], None]) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def main(argv: list[str]) -> int:
    """Run the inner or the outer side."""
    end = argv.index("--")
    command = argv[end + 1 :]
    if argv[0] == "inside":
        run_inside(argv[1], command)
    return run_outside(argv[1], frozenset(argv[2].split(",")), command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
