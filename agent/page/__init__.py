"""A run as one HTML page: what was said, and what every b-thread did at every step.

The page is one file that needs no network and runs no script; everything that a model or a tool wrote is shown as
text, whatever it contains.

- `markup`: elements that cannot be broken out of
- `wording`: recorded values in words
- `watching`: the run once more on its program, for who requested, heard, held and refused
- `conversation`: what was said, from the records
- `lanes`: the steps, with a lane for each b-thread
- `appearance`: what it looks like
- `document`: the whole page
"""

from agent.page.document import render_page

__all__ = ["render_page"]
