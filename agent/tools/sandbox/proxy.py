"""The proxy of an agent: lets a call reach the hosts that were granted to it, and nothing else.

It serves in threads of our process, in the network of the machine, on a socket in the loopback that the commands of the
agent share. So each call has a key, in the usual variables, that opens its hosts until the call is over. Programs that
use no proxy reach nothing. A name that resolves to a loopback or link-local address is refused, unless that address
itself was granted.
"""

import ipaddress
import os
import socket
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from urllib.parse import SplitResult, urlsplit

from attrs import define, field

LONGEST_HEAD = 65536  # bytes
SECONDS = 20.0  # for a connection
TO_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
PAST_IT = ("NO_PROXY", "no_proxy")
VARIABLES = frozenset((*TO_PROXY, *PAST_IT))
"""The variables that differ for each call."""

LISTEN = (
    "import socket; made = socket.create_server(('127.0.0.1', 0), backlog=64);"
    " socket.send_fds(socket.socket(fileno=0), [b'x'], [made.fileno()])"
)
"""A program that gives a listening socket of its network to the one at its standard input."""


def listen_in(joining: Sequence[str], python: str) -> socket.socket:
    """Return a socket that listens in the network that the words `joining` lead to. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(SECONDS)
        command = (*joining, python, "-I", "-S", "-c", LISTEN)
        done = subprocess.run(command, stdin=theirs.fileno(), capture_output=True, env={}, timeout=SECONDS, check=False)
        theirs.close()
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    if not descriptors:
        raise OSError(done.stderr.decode("utf-8", "replace").strip()[-200:] or "no socket listens in the sandbox")
    return socket.socket(fileno=descriptors[0])


@define(eq=False)
class Grant:
    """The hosts that one call may reach, and those that it asked for in vain."""

    hosts: frozenset[str]
    refused: list[str] = field(factory=list)


@define(eq=False)
class Proxy:
    """Serves on a listening socket until it is closed. Grants are found by their keys."""

    _server: socket.socket
    _grants: dict[str, Grant] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        _in_background(self._serve)

    def grant(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the variables with which a call reaches these hosts, until they are released."""
        key = os.urandom(16).hex()
        self._grants[key] = Grant(frozenset(hosts))
        address = f"http://call:{key}@127.0.0.1:{self._server.getsockname()[1]}"
        return {**dict.fromkeys(TO_PROXY, address), **dict.fromkeys(PAST_IT, "localhost,127.0.0.1")}

    def release(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """End the grant of a call with these variables; return the hosts that were refused to it."""
        grant = self._grants.pop(urlsplit(variables.get(TO_PROXY[0], "")).password or "", None)
        return () if grant is None else tuple(dict.fromkeys(grant.refused))

    def close(self) -> None:
        """Stop to serve."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                _in_background(partial(self._handle, client))

    def _handle(self, client: socket.socket) -> None:
        with client, suppress(OSError, ValueError):
            _let_through(client, self._grants)


def _let_through(client: socket.socket, grants: Mapping[str, Grant]) -> None:
    """Read one request of a proxy's client, and connect it with a granted host. Raises OSError, ValueError."""
    head, rest = _head_of(client)
    lines = head.decode("latin-1").split("\r\n")
    grant = grants.get(_key_in(lines[1:]))
    if grant is None:
        _refuse(client, "407 Proxy Authentication Required", "the key of the call is missing", 'Basic realm="sandbox"')
        return
    method, target, version = lines[0].split()
    url = urlsplit(f"//{target}" if method == "CONNECT" else target)
    host, port = (url.hostname or "").rstrip("."), url.port or 80
    if host not in grant.hosts or url.scheme not in ("", "http"):
        grant.refused.append(host)
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


def _key_in(headers: list[str]) -> str:
    """Return the key in the headers of a request; empty if there is not exactly one. Raises ValueError."""
    given = [header.split()[-1] for header in headers if header.lower().startswith("proxy-authorization: basic ")]
    return b64decode(given[0]).decode().removeprefix("call:") if len(given) == 1 else ""


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
