"""What is kept of an output of any length: its beginning, its end or both, by bytes and by lines, in bounded memory.

Where asked, all of it goes to a file as soon as something would be left out, up to a quota; the notice names it.
"""

from typing import Any, Literal, Protocol

from attrs import evolve, field, frozen, validators

from agent.tools.cutting import Cut, cut_head, cut_tail, size_in_words
from agent.tools.output import HeadAndTail
from agent.tools.spilling import Spill

__all__ = ["Collector", "Retained", "Retention"]

QUOTA = 64 * 1024 * 1024  # bytes of one output that go to a file


class Collector(Protocol):
    """Takes an output piece by piece."""

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""

    def text(self) -> str:
        """Return what is kept, with a notice of what is not."""


@frozen
class Retention:
    """What to keep: at most `limit` bytes and `lines` lines, where, and whether all of it goes to a file (`spill`)."""

    limit: int = field(default=200 * 1024, validator=validators.ge(1))
    lines: int | None = None
    keep: Literal["both", "head", "tail"] = "both"
    spill: bool = False
    quota: int = QUOTA

    def collector(self) -> "Retained":
        """Return what collects one output."""
        return Retained(self)


class Retained:
    """One output, and what was kept of it."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._both = HeadAndTail(retention.limit)
        self._window = bytearray()  # the beginning or the end, a byte more than may be kept
        self._total = 0
        self._newlines = 0
        self._spill = Spill(retention.limit, retention.quota) if retention.spill else None

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._total += len(piece)
        self._newlines += piece.count(b"\n")
        if self._spill is not None:
            self._spill.add(piece)
        if self._retention.keep == "both":
            self._both.add(piece)
        elif self._retention.keep == "head":
            self._window += piece[: max(self._retention.limit + 1 - len(self._window), 0)]
        else:
            self._window += piece
            del self._window[: max(0, len(self._window) - self._retention.limit - 1)]

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        if self._retention.keep != "both":
            return self._cut().cut_by is not None
        return self._both.truncated or self._newlines > (self._retention.lines or self._newlines)

    @property
    def path(self) -> str | None:
        """The file with all of the output; None when nothing was left out, or it is not kept."""
        return self._spill.path if self._spill is not None and self.truncated else None

    def text(self) -> str:
        """Return what is kept, with a notice of what is not."""
        where = self._spill.keep() if self._spill is not None and self.truncated else ""
        if self._retention.keep == "both":
            return self._ends() + (f"\n[{where}]" if where else "")
        cut = self._cut()
        return (
            cut.text
            if cut.cut_by is None
            else f"{cut.text.rstrip(chr(10))}\n\n[{'; '.join(_notices(self, cut, where))}]"
        )

    def details(self) -> dict[str, Any]:
        """Return the numbers for a tool's details: nothing when nothing was left out."""
        numbers = self._cut().details() if self._retention.keep != "both" else {}
        return numbers | ({"fullOutputPath": self.path} if self.path else {})

    def drop(self) -> None:
        """Give back what belongs to an output that nobody will see."""
        if self._spill is not None:
            self._spill.drop()

    @property
    def keeps_head(self) -> bool:
        """Whether the beginning is kept."""
        return self._retention.keep == "head"

    @property
    def limit(self) -> int:
        """Bytes that are kept, at most."""
        return self._retention.limit

    def _ends(self) -> str:
        """Return the beginning and the end: so many bytes, and of these so many lines."""
        text, most = self._both.text(), self._retention.lines
        lines = text.splitlines(keepends=True)
        if most is None or len(lines) <= most:
            return text
        head, tail = lines[: most - most // 2], lines[len(lines) - most // 2 :]
        notice = f"[output truncated: {len(lines) - most} of {len(lines)} lines left out here]\n"
        return "".join([*head, notice, *tail])

    def _cut(self) -> Cut:
        lines = self._retention.lines or 10**12
        cut = (cut_head if self.keeps_head else cut_tail)(bytes(self._window), most_lines=lines, most_bytes=self.limit)
        total_lines = self._newlines + (not self._window.endswith(b"\n") and self._total > 0)
        if self._total > len(self._window) and cut.cut_by is None:
            cut = evolve(cut, cut_by="bytes")
        return evolve(cut, total_bytes=self._total, total_lines=max(total_lines, cut.kept_lines))


def _notices(retained: Retained, cut: Cut, where: str) -> list[str]:
    """Say which part is shown, why no more, and where all of it is."""
    if cut.partial_line:
        end = "beginning" if retained.keeps_head else "end"
        shown = f"the {end} of line {1 if retained.keeps_head else cut.total_lines} is shown"
    else:
        first = 1 if retained.keeps_head else cut.total_lines - cut.kept_lines + 1
        shown = f"lines {first} to {first + cut.kept_lines - 1} are shown"
    limit = f" ({size_in_words(retained.limit)} limit)" if cut.cut_by == "bytes" else ""
    return [f"output truncated: {shown} of {cut.total_lines}{limit}", *([where] if where else [])]
