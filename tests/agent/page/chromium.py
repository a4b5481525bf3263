"""A real browser for tests of pages: headless chromium, driven over a pipe by its DevTools protocol."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from agent.cli.demo import make_workshop, perform
from agent.cli.screen import Screen
from agent.log.reading import read_log
from agent.page import render_page

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--mute-audio")

PLACED = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts a program with the descriptors 3 and 4, on which it is spoken to."""


class Browser:
    """One page in chromium. `complaints` are errors of scripts, and what the content security policy refused."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._waiting, self._number, self._session = b"", 0, ""
        self._loaded = False
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def show(self, address: str, width: int = 1440, height: int = 900, *, dark: bool = False) -> None:
        """Load a page and wait until it was drawn; width and height in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        for place in ("about:blank", address):  # anew, also where only what follows a # differs
            self._loaded = False
            self._call("Page.navigate", url=place)
            while not self._loaded:
                self._note(self._heard())
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run(
            "new Promise(done => { let n = 4; const next = () => n-- ? requestAnimationFrame(next) : done(); next(); })"
        )

    def run(self, script: str) -> Any:
        """Return the value of a script, awaited; plain data."""
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key on the page."""
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def picture(self, path: Path) -> None:
        """Write a PNG of what is seen."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._heard()
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                return heard["result"]
            self._note(heard)

    def _heard(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            piece = os.read(self._answers, 1 << 20)
            assert piece, "chromium is gone"
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\0")
        heard: dict[str, Any] = json.loads(line)
        return heard

    def _note(self, heard: dict[str, Any]) -> None:
        match heard:
            case {"method": "Page.loadEventFired"}:
                self._loaded = True
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error", "text": text}}}:
                self.complaints.append(text)


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Give a browser; `profile` is a folder of its own."""
    (to_read, commands), (answers, to_write) = os.pipe(), os.pipe()
    words = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    started = subprocess.Popen(
        [sys.executable, "-c", PLACED, str(to_read), str(to_write), *words],
        pass_fds=(to_read, to_write),
        env={**os.environ, "TMPDIR": "/tmp"},  # it makes a socket there, whose path must be short
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)
        with started:
            started.terminate()
        os.close(answers)


def data_of(page: str) -> dict[str, Any]:
    """Return what the script of a page draws."""
    data: dict[str, Any] = json.loads(page.split('id="data">')[1].split("</script>")[0])
    return data


# The pictures of the README: the demo in a terminal, its page on a desk and on a phone. `make screens`.


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
