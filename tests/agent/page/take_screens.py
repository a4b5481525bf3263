"""Take the pictures of the README: the demo in a terminal, its page on a desk and on a phone. `make screens`."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from agent.log.reading import read_log
from agent.page import render_page
from tests.agent.cli.sessions import COMMAND
from tests.agent.page.chromium import chromium

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
COLUMNS, LINES = 108, 42  # of the terminal that is pictured
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would come from the network
FOLDER = re.compile(r"/\S*/bpagent-demo-\w+")


def main() -> int:
    """Run the demo, and write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "demo.jsonl"
        shown = FOLDER.sub("/tmp/demo", _on_terminal("demo", "--log", str(log)).replace(str(log), "demo.jsonl"))
        _draw(_between("\N{BOX DRAWINGS LIGHT DOWN} outside", shown, "What the remote"), "demo", "bpagent demo")
        _draw(_between("What the remote", shown, "The run as a page"), "scenes", "and then")
        page = Path(folder) / "demo.html"
        page.write_text(render_page(read_log(log)).replace(folder, "/tmp/demo"))
        _photograph(page, Path(folder) / "profile")
    return 0


def _between(first: str, text: str, last: str) -> str:
    """Return the part of a text from the line with `first` to the one before `last`."""
    lines = text.splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if found in line) for found in (first, last))
    return "\n".join(lines[begin:end])


def _on_terminal(*words: str) -> str:
    """Return what the command writes to a terminal, colors and all."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color"}
    nothing = subprocess.DEVNULL
    with subprocess.Popen([*COMMAND, *words], stdin=nothing, stdout=slave, stderr=slave, env=environ):
        os.close(slave)
        written = b""
        with suppress(OSError):  # the other end is gone
            while piece := os.read(master, 65536):
                written += piece
    os.close(master)
    return written.decode().replace("\r\n", "\n")


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
