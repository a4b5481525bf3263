"""Text that can be stored and sent: what to do with half a character.

JSON escapes may spell half of a surrogate pair. Servers cut pairs over two chunks, and models write halves; neither
can be encoded as UTF-8, so a log or a request would fail on it much later.
"""

import re

__all__ = ["mend_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def mend_surrogates(text: str) -> str:
    """Return `text` with halves that stand side by side joined, and lone halves replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
