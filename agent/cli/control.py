"""Control of a run from another process of the same user: approve, reject, steer and stop, over a socket.

The run listens, other commands of `bpagent` send. The socket is beside the runs, where the constitution allows no tool;
decisions of processes that the run has started are refused, so that an agent cannot approve its own calls.
"""

import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from agent.cli.runs import name_beside, runs_folder

LONGEST = 64 * 1024  # bytes of one decision
PATIENCE = 5.0  # seconds for an answer
UNDOING = 300.0  # the same, of an undo
CREDENTIALS = struct.Struct("3i")  # process, user and group of the other end

Act = Callable[[dict[str, Any]], Awaitable[str]]
"""Carries out a decision; returns why that is impossible, or an empty text."""


class NotDelivered(Exception):
    """No run accepted a decision about this log; the message says why."""


def send(log: Path, decision: dict[str, Any]) -> None:
    """Send a decision to the run that writes `log`. Raises NotDelivered."""
    with socket.socket(socket.AF_UNIX) as sender, _short(_socket_of(log)) as address:
        sender.settimeout(UNDOING if decision.get("do") == "undo" else PATIENCE)
        try:
            sender.connect(address)
            sender.sendall(json.dumps(decision).encode() + b"\n")
            answer = sender.makefile().readline()
        except OSError as error:
            raise NotDelivered(f"no run listens to decisions about {log}: {error.strerror or error}") from error
    if answer != "\n":
        raise NotDelivered(answer.strip() or "the run gave no answer")


@asynccontextmanager
async def decisions(log: Path | None, act: Act, unreachable: Callable[[str], None]) -> AsyncIterator[None]:
    """Accept decisions about the run that writes `log` while the block lasts; without a log there are none.

    unreachable: called with the reason if the socket cannot be made; then there are none either.
    """
    async with anyio.create_task_group() as tasks:
        if log is not None:
            tasks.start_soon(_listen, _socket_of(log), act, unreachable)
        yield
        tasks.cancel_scope.cancel()


async def _listen(path: Path, act: Act, unreachable: Callable[[str], None]) -> None:
    """Accept decisions until cancelled."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _short(path) as address:
            listener = await anyio.create_unix_listener(address, mode=0o600)
    except OSError as error:
        unreachable(str(error))
        return
    try:
        async with listener:
            await listener.serve(partial(_converse, act))
    finally:
        path.unlink(missing_ok=True)


async def _converse(act: Act, stream: SocketStream) -> None:
    async with stream:
        with suppress(anyio.BrokenResourceError, anyio.IncompleteRead, anyio.DelimiterNotFound, TimeoutError):
            with anyio.fail_after(PATIENCE):
                said = await BufferedByteReceiveStream(stream).receive_until(b"\n", LONGEST)
            decision = None
            with suppress(ValueError):
                decision = json.loads(said)
            objection = _refusal(stream.extra(SocketAttribute.raw_socket))
            if not objection:
                objection = await act(decision) if isinstance(decision, dict) else "this is not a decision"
            await stream.send(objection.replace("\n", " ").encode() + b"\n")


def _refusal(connection: socket.socket) -> str:
    """Return why the other end is refused; an empty text if it is accepted."""
    process, user, _ = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    if user != os.getuid() or process <= 0:
        return "only the user of the run is heard"
    if os.getpid() in _line_of(process):
        return "what the run has started decides nothing about it"
    return ""


def _line_of(process: int) -> Iterator[int]:
    """Yield a process and its ancestors, up to one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        while process > 0:
            yield process
            process = int(Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def _socket_of(log: Path) -> Path:
    return runs_folder().with_name("control") / f"{name_beside(log)}.sock"


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address for a socket of at most 107 bytes, the limit of the system."""
    if len(os.fsencode(path)) < 100 or not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield str(path)
        return
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
