"""Tools that read, write, change and list files: `read`, `write`, `edit`, `ls` (S2).

Reading order: `operations` (what these tools need of a file system), `pages` (a part of a long file), `pictures`;
`reading`, `writing`, `listing` (the tools); `spans` (where a text stands in a file), `differences`, `editing`.
"""

from agent.tools.files.editing import make_edit
from agent.tools.files.listing import make_ls
from agent.tools.files.operations import Files
from agent.tools.files.reading import make_read
from agent.tools.files.writing import make_write

__all__ = ["Files", "make_edit", "make_ls", "make_read", "make_write"]
