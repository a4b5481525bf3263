"""A relay to an MCP server that passes only whole lines of JSON of limited length.

    python -I -S mcp_relay.py PROGRAM ARGUMENTS ...

The server has our standard input. The first line that it prints beside its protocol is reported once, as a message of
the protocol, and the beginning of its standard error goes to ours. An answer that is too long is replaced by an error,
so that no caller waits for it.
"""

import json
import os
import re
import subprocess
import sys
from threading import Thread
from typing import IO

LONGEST = 8 * 1024 * 1024  # bytes of one line
COMPLAINTS = 16 * 1024  # bytes of standard error
PATIENCE = 1.0  # seconds for the last of them
SHOWN = 80  # characters of a line that is not JSON

_ID = re.compile(rb'"id"\s*:\s*(\d+|"[^"\\]{1,64}")')


def relay(server: IO[bytes], out: IO[bytes]) -> None:
    """Pass lines on until the server's output ends."""
    told = False
    while line := server.readline(LONGEST):
        if not line.endswith(b"\n") and len(line) == LONGEST:
            _write(out, _too_long(line))
            while (rest := server.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
        elif _is_json(line):
            out.write(line)
            out.flush()
        elif line.strip() and not told:
            told = True
            shown = ascii(line.decode("utf-8", "replace").strip()[:SHOWN])
            text = f"it prints lines that are no JSON to its standard output, which are left out: {shown}"
            params = {"level": "warning", "logger": "relay", "data": text}
            _write(out, {"jsonrpc": "2.0", "method": "notifications/message", "params": params})


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _too_long(line: bytes) -> dict[str, object]:
    """Return the error for an answer that is too long; a message if its id is not among its first bytes."""
    said = f"the server's answer is longer than {LONGEST} bytes"
    found = _ID.search(line[:1000])
    if found is None:
        return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "warning", "data": said}}
    return {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": {"code": -32000, "message": said}}


def _write(out: IO[bytes], message: dict[str, object]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def complain(server: IO[bytes], out: IO[bytes]) -> None:
    """Pass on the beginning of a server's standard error, and read the rest, so that the server is not blocked."""
    left = COMPLAINTS
    while piece := server.read1(COMPLAINTS):  # type: ignore[attr-defined]
        out.write(piece[:left])
        out.flush()
        left = max(left - len(piece), 0)


def given_environment() -> dict[str, str] | None:
    """Return the environment from before Python set LC_CTYPE, as it does in the C locale; None if it is not told."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = os.fsdecode(file.read()).split("\0")
    except OSError:
        return None
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def main() -> int:
    """Start the server, relay its output, and return its exit code."""
    pipe = subprocess.PIPE
    with subprocess.Popen(sys.argv[1:], stdout=pipe, stderr=pipe, stdin=sys.stdin, env=given_environment()) as server:
        assert server.stdout is not None
        complaints = Thread(target=complain, args=(server.stderr, sys.stderr.buffer), daemon=True)
        complaints.start()
        try:
            relay(server.stdout, sys.stdout.buffer)
        except BrokenPipeError:
            server.terminate()
        complaints.join(PATIENCE)  # child processes of the server may hold it open
        return server.wait()


if __name__ == "__main__":
    sys.exit(main())
