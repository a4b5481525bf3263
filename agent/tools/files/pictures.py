"""Which files are pictures that a model can look at, and making them small enough for it (S2).

What a picture is, its first bytes say, never its name. One that would be enormous when unpacked is refused before
it is: a file of a few kilobytes can claim a billion pixels.
"""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from agent.tools.errors import ToolError
from agent.vocabulary.messages import Image

if TYPE_CHECKING:
    from PIL.Image import Image as Opened

__all__ = ["LONGEST_EDGE", "MOST_PICTURE_BYTES", "Picture", "media_type", "prepare"]

LONGEST_EDGE = 2000  # pixels
MOST_PICTURE_BYTES = 20 * 1024 * 1024
MOST_PIXELS = 50_000_000  # 200 MB unpacked

_FORMATS: Mapping[str, str] = {"image/jpeg": "JPEG", "image/png": "PNG", "image/gif": "GIF", "image/webp": "WEBP"}


@frozen
class Picture:
    """A picture as it is sent, what it was before, and what it is now, in pixels; None where nobody looked."""

    image: Image
    original: tuple[int, int] | None = None
    size: tuple[int, int] | None = None

    def __str__(self) -> str:
        """Return it in words: "image/png, 2000x500 pixels (made smaller, from 4000x1000)"."""
        if self.size is None or self.original is None:
            return self.image.media_type
        words = f"{self.image.media_type}, {self.size[0]}x{self.size[1]} pixels"
        smaller = f" (made smaller, from {self.original[0]}x{self.original[1]})"
        return words if self.size == self.original else words + smaller


def media_type(head: bytes) -> str | None:
    """Return the media type of a JPG, PNG, GIF or WebP from its first 16 bytes; None for everything else."""
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head.startswith(b"RIFF") and head[8:12] == b"WEBP" else None


def prepare(content: bytes, kind: str, *, resize: bool) -> Picture:
    """Return a picture with no edge longer than 2000 pixels, or as it is without `resize`.

    Raises ToolError for what is no whole picture, is too large, or needs the extra `images` to be looked at.
    """
    if len(content) > MOST_PICTURE_BYTES:
        raise ToolError(f"the picture has more than {MOST_PICTURE_BYTES} bytes, which cannot be sent; make it smaller")
    return _fitted(content, kind) if resize else Picture(Image(kind, content))


def _fitted(content: bytes, kind: str) -> Picture:
    try:
        import PIL.Image
    except ImportError as error:
        raise ToolError("cannot look at pictures: install the extra 'images' (pillow)") from error
    try:
        with PIL.Image.open(io.BytesIO(content), formats=[_FORMATS[kind]]) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise ToolError(f"the picture claims {opened.width}x{opened.height} pixels; that is refused")
            if max(opened.size) > LONGEST_EDGE:
                return _shrunk(opened, kind)
            opened.load()
            return Picture(Image(kind, content), opened.size, opened.size)
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning) as error:
        raise ToolError(f"the picture claims too many pixels; that is refused: {error}") from error
    except PIL.UnidentifiedImageError as error:  # whose words name an object of ours
        raise ToolError("not a picture that can be read: its format is not known, or it is damaged") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise ToolError(f"not a picture that can be read: {error}") from error


def _shrunk(opened: "Opened", kind: str) -> Picture:
    """Return the picture (of a moving one the first frame) as large as may be."""
    original = opened.size
    opened.thumbnail((LONGEST_EDGE, LONGEST_EDGE))
    written = io.BytesIO()
    opened.save(written, format=_FORMATS[kind])
    return Picture(Image(kind, written.getvalue()), original, opened.size)
