"""Which addresses a tool may reach: public ones. A name is resolved once, and what was checked is what is reached.

Otherwise a model (or a page that tells it what to do) could read what listens on this machine and in its network.
"""

import ipaddress
import socket
from collections.abc import Iterable

import anyio

from agent.tools.errors import ToolError

__all__ = ["find_address", "is_public"]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


async def find_address(host: str, port: int, allowed: Iterable[str] = ()) -> str:
    """Return the address to connect to for `host`. Raises ToolError if one of its addresses is not public.

    `allowed` are addresses that may be reached although they are not, such as "127.0.0.1".
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"cannot find {host}: {getattr(error, 'strerror', None) or error}") from error
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    exempt = frozenset(allowed)
    for address in addresses:
        if address not in exempt and not is_public(address):
            raise ToolError(f"{host} leads to {address}, which is not a public address; only those may be reached")
    if not addresses:
        raise ToolError(f"cannot find {host}: it has no address")
    return addresses[0]


def is_public(text: str) -> bool:
    """Whether an address is one of the public internet, also where it carries an older one within."""
    return all(address.is_global and not _is_special(address) for address in _with_inner(ipaddress.ip_address(text)))


def _is_special(address: Address) -> bool:
    return address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local


def _with_inner(address: Address) -> list[Address]:
    """Return an address and the IPv4 addresses that it stands for (mapped, 6to4, Teredo, NAT64)."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner: list[Address] = [address]
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _LOCAL_NAT64:
        inner.append(ipaddress.IPv4Address("127.0.0.1"))
    return inner
