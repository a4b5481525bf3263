"""Tools that search: `grep` and `find` (S2), `list_files` (S3).

Reading order: `globs`, `ignoring` (`.gitignore`), `walking`; `patterns` (regular expressions), `line_finder`,
`engines` (`rg`, or Python in a process of its own), `batches`, `matches`; `grepping`, `finding` (the tools).
"""

from agent.tools.search.finding import make_find, make_list_files
from agent.tools.search.grepping import make_grep

__all__ = ["make_find", "make_grep", "make_list_files"]
