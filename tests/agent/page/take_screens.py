"""Take the pictures of the README: the demo in a terminal, its page on a desk and on a phone. `make screens`."""

import os
import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from agent.cli.demo import make_workshop, perform
from agent.cli.screen import Screen
from agent.log.reading import read_log
from agent.page import render_page
from tests.agent.page.chromium import chromium

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
COLUMNS = 108  # of the terminal that is pictured
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would come from the network


def main() -> int:
    """Run the demo, and write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stream = StringIO()
        screen = Screen(stream, colored=True, columns=COLUMNS)
        workshop = make_workshop(Path(folder) / "demo", Path(folder) / "demo.jsonl")
        perform(screen, workshop)
        shown = stream.getvalue().replace(folder, "/tmp")
        _draw(_between("\N{BOX DRAWINGS LIGHT DOWN} outside", shown, "What the remote"), "demo", "bpagent demo")
        _draw(_between("What the remote", shown, "The run as a page"), "scenes", "and then")
        page = Path(folder) / "demo.html"
        page.write_text(render_page(read_log(workshop.log)).replace(folder, "/tmp"))
        _photograph(page, Path(folder) / "profile")
    return 0


def _between(first: str, text: str, last: str) -> str:
    """Return the part of a text from the line with `first` to the one before `last`."""
    lines = text.splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if found in line) for found in (first, last))
    return "\n".join(lines[begin:end])


def _draw(text: str, name: str, title: str) -> None:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(text.rstrip()), soft_wrap=True)
        (PICTURES / f"{name}.svg").write_text(FONTS.sub("", console.export_svg(title=title)))


def _photograph(page: Path, profile: Path) -> None:
    with chromium(profile) as browser:
        for name, width, height, dark in (("page", 1440, 900, False), ("phone", 390, 844, True)):
            browser.show(page.as_uri(), width, height, dark=dark)
            if name == "phone":
                for _ in range(3):
                    browser.press("n")
            browser.picture(PICTURES / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
