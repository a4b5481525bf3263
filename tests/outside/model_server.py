"""A model's server on loopback, in both wire formats: it plays the replies it is given, and keeps the requests."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

from attrs import define, field, frozen

__all__ = [
    "ModelServer",
    "Pause",
    "Reply",
    "Request",
    "Stream",
    "call",
    "calling",
    "calls_item",
    "finished",
    "refusing",
    "saying",
    "says_item",
]

END = "data: [DONE]\n\n"


@frozen
class Request:
    """What the server was asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    time: float = 0.0

    def told(self, call: str) -> str:
        """What the model is told about a call."""
        results = [item["content"] for item in self.body["messages"] if item.get("tool_call_id") == call]
        assert len(results) == 1, f"{call} has {len(results)} results"
        return str(results[0])

    @property
    def assistant(self) -> dict[str, Any]:
        """The newest message of the assistant."""
        return dict([item for item in self.body["messages"] if item["role"] == "assistant"][-1])


@frozen
class Pause:
    """A stop on the way: the server says when it is reached, and goes on when it may."""

    reached: threading.Event = field(factory=threading.Event)
    over: threading.Event = field(factory=threading.Event)


@frozen
class Stream:
    """Chunks that are streamed with status 200; `done`: with the end mark. `pause` comes before the last one."""

    chunks: Iterable[dict[str, Any]]
    done: bool = True
    pause: Pause | None = None


@frozen
class Status:
    """An error of HTTP."""

    code: int
    headers: Mapping[str, str] = field(factory=dict)


Reply = Stream | Status


def call(id: str | None, name: str | None, arguments: object = None, index: int | None = 0) -> dict[str, Any]:
    """A call as it stands in a chunk; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
    piece = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": text}}
    return {key: value for key, value in piece.items() if value is not None}


def finished(*deltas: Mapping[str, Any], reason: str | None) -> tuple[dict[str, Any], ...]:
    """Chunks with these deltas, and with a finish reason at the end if there is one."""
    said = [{"index": 0, "delta": dict(delta), "finish_reason": None} for delta in deltas]
    ends = [] if reason is None else [{"index": 0, "delta": {}, "finish_reason": reason}]
    return tuple({"id": "c", "object": "chat.completion.chunk", "choices": [each]} for each in (*said, *ends))


def saying(*pieces: str, reason: str | None = "stop", done: bool = True) -> Stream:
    """A text, in pieces."""
    return Stream(finished(*({"content": piece} for piece in pieces), reason=reason), done)


def calling(*calls: Mapping[str, Any], reason: str | None = "tool_calls", done: bool = True) -> Stream:
    """Calls, each with an index of its own; its place gives it."""
    numbered = ({"tool_calls": [{**each, "index": place}]} for place, each in enumerate(calls))
    return Stream(finished(*numbered, reason=reason), done)


def refusing(code: int, **headers: str) -> Status:
    """An error of HTTP with headers; `retry_after` is the header retry-after."""
    return Status(code, {name.replace("_", "-"): value for name, value in headers.items()})


def calls_item(id: str, name: str, arguments: object) -> Stream:
    """A call in the format of the responses API."""
    text = json.dumps(arguments)
    item = {"type": "function_call", "id": f"item_{id}", "call_id": id, "name": name, "arguments": text}
    return _response(item)


def says_item(text: str) -> Stream:
    """A text in the format of the responses API."""
    return _response(
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    )


def _response(item: dict[str, Any]) -> Stream:
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}}
    response = {"id": "r", "status": "completed", "output": [{**item, "status": "completed"}]}
    return Stream((done, {"type": "response.completed", "response": response}), done=False)


@define
class ModelServer:
    """A server; `reply` says what comes next. What is asked beyond that gets the text `nothing left to say`.

    think: or what a request is given.
    """

    think: Callable[[Request], Reply] | None = None
    requests: list[Request] = field(factory=list)
    _replies: list[Reply] = field(factory=list)
    _server: ThreadingHTTPServer = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def reply(self, *replies: Reply) -> None:
        """Give the next requests these replies, one each."""
        self._replies.extend(replies)

    def next_reply(self, request: Request) -> Reply:
        if self.think is not None:
            return self.think(request)
        return self._replies.pop(0) if self._replies else saying("nothing left to say")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(100)


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, json.loads(content or b"null"), monotonic())
            server.requests.append(request)
            with suppress(OSError):  # who asked may leave at any moment
                _play(self, server.next_reply(request))

        do_GET = do_HEAD = do_PUT = do_OPTIONS = do_DELETE = do_POST  # noqa: N815, as the library calls them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _play(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    match reply:
        case Status(code=code, headers=headers):
            handler.send_response(code)
            for name, value in {**headers, "content-length": "2"}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(b"{}")
        case Stream(pause=pause):
            handler.send_response(200)
            handler.send_header("content-type", "text/event-stream")
            handler.end_headers()
            for frame, is_last in _frames(reply):
                if pause is not None and is_last:
                    pause.reached.set()
                    pause.over.wait(1000)
                handler.wfile.write(frame)


def _frames(stream: Stream) -> Iterator[tuple[bytes, bool]]:
    length = len(stream.chunks) if isinstance(stream.chunks, Sized) else None
    for position, chunk in enumerate(stream.chunks, 1):
        yield f"data: {json.dumps(chunk)}\n\n".encode(), position == length
    if stream.done:
        yield END.encode(), False
