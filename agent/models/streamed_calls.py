"""Which call each streamed piece belongs to, also when the server gives no index, no id, or the same one twice.

For each piece of a call, first a *candidate* is found, then it is decided
whether the piece continues that candidate or begins a call of its own:

| the piece has          | candidate                                                                            |
| ---------------------- | ------------------------------------------------------------------------------------ |
| index and id           | the call with both; else one with the same index or the same id that lacks the other |
| index only             | the call at that index that was touched last                                         |
| id only                | the call with that id; else the call touched last, if it has no id yet               |
| neither                | the call touched last                                                                |

A piece that is not nameless begins a call of its own when its candidate has another name (unless the pieces of the
name itself stream), or when its candidate's arguments are whole already. A nameless piece never begins a call when
there is a candidate: argument text that does not fit makes the call unreadable, and unreadable calls never run.
"""

from io import StringIO

from agent.models.arguments import is_json_object
from agent.models.chunks import CallPiece
from agent.models.model import ModelError
from agent.models.nesting import Nesting
from agent.models.surrogates import mend_surrogates
from agent.vocabulary.messages import RequestedCall

__all__ = ["MOST_CALLS", "StreamedCalls"]

MOST_CALLS = 1_000
"""Calls that an answer may have; more are an error."""


class _Call:
    """A call while it streams."""

    def __init__(self, piece: CallPiece) -> None:
        self.index = piece.index
        self.id = piece.id
        self.name = piece.name
        self._arguments = StringIO()
        self._last = ""
        self._nesting = Nesting()
        self._is_whole: bool | None = None  # None: nobody has asked since the last piece
        self.extend(piece.arguments)

    def extend(self, text: str) -> None:
        self._arguments.write(text)
        self._last = text.rstrip()[-1:] or self._last
        if text:
            self._nesting.feed(text)
            self._is_whole = None

    @property
    def arguments(self) -> str:
        return self._arguments.getvalue()

    @property
    def is_empty(self) -> bool:
        return not self._last

    @property
    def is_whole(self) -> bool:
        if self._is_whole is None:
            self._is_whole = self._last == "}" and self._nesting.is_closed and is_json_object(self.arguments)
        return self._is_whole

    def take(self, piece: CallPiece) -> None:
        """Continue with `piece`: ids and names are said again or late, arguments go on."""
        self.index = piece.index if self.index is None else self.index
        self.id = self.id or piece.id
        if piece.name and piece.name != self.name:
            grown = piece.name.startswith(self.name)
            self.name = piece.name if grown else self.name + piece.name
        self.extend(piece.arguments)

    def is_repeated_by(self, piece: CallPiece) -> bool:
        """Tell whether `piece` says the whole call once more, as some servers do at the end."""
        return bool(piece.id) and (piece.id, piece.name, piece.arguments) == (self.id, self.name, self.arguments)


class StreamedCalls:
    """The calls of an answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._by_both: dict[tuple[int, str], _Call] = {}
        self._touched: _Call | None = None

    def add(self, pieces: tuple[CallPiece, ...]) -> None:
        """Give each piece of one chunk to the call that it belongs to."""
        here: set[int] = set()
        for piece in pieces:
            candidate = self._candidate(piece)
            new = candidate is None or _begins_another(candidate, piece, beside=id(candidate) in here)
            call = self._begin(piece) if new or candidate is None else self._continue(candidate, piece)
            here.add(id(call))
            self._remember(call)

    def requested(self) -> tuple[RequestedCall, ...]:
        """Return the calls as the model wrote them: by index when it gave each its own, else as they began."""
        calls = self._calls
        indices = {call.index for call in calls}
        if None not in indices and len(indices) == len(calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        return tuple(
            RequestedCall(*(mend_surrogates(text) for text in (call.id, call.name, call.arguments))) for call in calls
        )

    def _candidate(self, piece: CallPiece) -> _Call | None:
        if piece.index is None:
            return self._by_id.get(piece.id) or self._last_without_id() if piece.id else self._touched
        if not piece.id:
            return self._by_index.get(piece.index)
        exact = self._by_both.get((piece.index, piece.id))
        return exact or self._unidentified(piece.index) or self._unindexed(piece.id)

    def _last_without_id(self) -> _Call | None:
        return self._touched if self._touched and not self._touched.id else None

    def _unidentified(self, index: int) -> _Call | None:
        call = self._by_index.get(index)
        return call if call and not call.id else None

    def _unindexed(self, id: str) -> _Call | None:
        call = self._by_id.get(id)
        return call if call and call.index is None else None

    def _begin(self, piece: CallPiece) -> _Call:
        if len(self._calls) == MOST_CALLS:
            raise ModelError(f"the model's answer has more than {MOST_CALLS:,} calls; ask for less at once")
        call = _Call(piece)
        self._calls.append(call)
        return call

    def _continue(self, call: _Call, piece: CallPiece) -> _Call:
        if not (piece.arguments and call.is_repeated_by(piece)):
            call.take(piece)
        return call

    def _remember(self, call: _Call) -> None:
        self._touched = call
        if call.id:
            self._by_id[call.id] = call
        if call.index is not None:
            self._by_index[call.index] = call
            self._by_both[call.index, call.id] = call


def _begins_another(candidate: _Call, piece: CallPiece, *, beside: bool) -> bool:
    """Decide whether `piece` begins a call of its own instead of continuing `candidate`.

    `beside` says that an earlier piece of the same chunk belongs to the candidate.
    """
    if not piece.name or not candidate.name:
        return False
    if beside and piece.index is None:  # two entries of one list are two calls
        return True
    if piece.name != candidate.name and not _is_same_call(candidate, piece):
        return True
    if not candidate.is_whole or candidate.is_repeated_by(piece):
        return False
    return bool(piece.arguments.strip()) or (piece.index is None and bool(piece.id) and not candidate.id)


def _is_same_call(candidate: _Call, piece: CallPiece) -> bool:
    """Tell whether a piece with another name belongs to the candidate all the same: then names come in pieces."""
    if not candidate.is_empty:
        return False
    if piece.id:
        return piece.id == candidate.id
    return piece.index is not None and bool(candidate.id)
