"""Tools that reach the web (S2).

Reading order: `addresses` (which ones may be reached), `fetching` (one resource, within bounds), `pages` (from HTML
to text), `webfetch`, `websearch` (the tools).
"""

from agent.tools.web.webfetch import make_webfetch
from agent.tools.web.websearch import make_websearch

__all__ = ["make_webfetch", "make_websearch"]
