"""Seatbelt, the sandbox of macOS. Written after its documentation, and not tried: no machine of ours runs it."""

from collections.abc import Iterable, Iterator

from agent.tools.sandbox.places import Confinement

SINKS = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def profile(inside: Confinement) -> str:
    """Return the profile for `sandbox-exec -p`; later lines win."""
    return "\n".join(_lines(inside))


def _lines(inside: Confinement) -> Iterator[str]:
    yield from ("(version 1)", "(allow default)", "(deny file-write*)")
    yield f"(allow file-write* {_below((*inside.writable, inside.scratch))} {_literal(SINKS)})"
    if inside.kept:
        yield f"(deny file-write* {_below(inside.kept)})"
    if inside.hidden:
        yield f"(deny file-read* file-write* {_below(inside.hidden)})"
    if inside.granted:
        yield f"(allow file-read* file-write* {_below(inside.granted)})"
    yield from ("(deny signal)", "(allow signal (target same-sandbox))", "(deny mach-lookup)", "(deny appleevent-send)")
    if not inside.network:
        yield from ("(deny network*)", '(allow network* (local ip "localhost:*"))')
        yield '(allow network-outbound (remote ip "localhost:*"))'


def _below(places: Iterable[str]) -> str:
    return " ".join(f"(subpath {_quoted(place)})" for place in places)


def _literal(places: Iterable[str]) -> str:
    return " ".join(f"(literal {_quoted(place)})" for place in places)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
