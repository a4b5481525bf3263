"""A small `curl`, run as a program, for worlds on machines that have none: requests to the one server of the world.

It knows the options below, and reads the address of the server and the headers from `.curlrc`, as curl does. Any other
option is an error that says to install curl.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

BAD_USE, NO_HOST, BAD_STATUS, NOT_WRITTEN, NOT_READ, TOO_LATE = 2, 7, 22, 23, 26, 28
"""The exit codes of curl."""


class Failed(Exception):
    """A request cannot be made: the exit code, and why."""


class Options(ArgumentParser):
    """The options. An unknown one raises Failed."""

    def __init__(self) -> None:
        super().__init__("curl", add_help=False, allow_abbrev=False)
        for names in ("-s --silent", "-S --show-error", "-f --fail", "-L --location", "-k --insecure", "-g --globoff"):
            self.add_argument(*names.split(), action="store_true")
        for names in ("-o --output", "-X --request", "-T --upload-file", "-x --proxy", "--connect-to"):
            self.add_argument(*names.split())
        self.add_argument("-m", "--max-time", type=float, default=60.0)
        self.add_argument("-H", "--header", action="append", default=[])
        for names, read in (("-d --data", _text), ("--data-binary", _binary), ("--data-raw", os.fsencode)):
            self.add_argument(*names.split(), dest="data", action="append", type=read)
        self.add_argument("--url", action="append", default=[])
        self.add_argument("urls", nargs="*")

    def error(self, message: str) -> NoReturn:
        """Raise Failed."""
        raise Failed(BAD_USE, f"{message}; this is the small curl of bpagent, install curl")


def _text(value: str) -> bytes:
    return _binary(value).translate(None, b"\r\n\0") if value.startswith("@") else os.fsencode(value)


def _binary(value: str) -> bytes:
    return _content(value[1:]) if value.startswith("@") else os.fsencode(value)


def _content(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise Failed(NOT_READ, f"cannot open {path!r}: {error.strerror}") from error


def configuration(path: Path) -> list[str]:
    """Return the options in a `.curlrc` as words; none if there is no file."""
    lines = path.read_text().splitlines() if path.is_file() else []
    pairs = (line.partition(" = ") for line in lines)
    return [f"--{name}={value.strip(chr(34))}" for name, _, value in pairs]


def answer(url: str, options: Namespace) -> bytes:
    """Send a request, and return the content of the answer. Raises Failed."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise Failed(BAD_USE, f"the small curl of bpagent cannot ask {url!r}; install curl")
    upload, body = options.upload_file, None if options.data is None else b"&".join(options.data)
    headers = {"Host": parts.netloc, "User-Agent": "curl", "Accept": "*/*"}
    if upload:
        body = _content(upload)
    elif body is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    given = (header.partition(":") for header in options.header)
    headers |= {name: value.strip() for name, _, value in given}
    path = (parts.path or "/") + (Path(upload).name if upload and parts.path.endswith("/") else "")
    method = options.request or ("PUT" if upload else "GET" if body is None else "POST")
    host, _, port = (options.connect_to or "").removeprefix("::").rpartition(":")
    connection = HTTPConnection(host or parts.hostname, int(port or parts.port or 80), timeout=options.max_time)
    try:
        connection.request(method, f"{path}?{parts.query}" if parts.query else path, body, headers)
        response = connection.getresponse()
        if response.status >= 400 and options.fail:
            raise Failed(BAD_STATUS, f"The requested URL returned error: {response.status}")
        return response.read()
    except TimeoutError as error:
        raise Failed(TOO_LATE, f"{parts.hostname} did not answer in time") from error
    except (OSError, HTTPException) as error:
        raise Failed(NO_HOST, f"cannot connect to {parts.hostname}: {error}") from error


def main(words: Sequence[str]) -> int:
    """Carry out a command line; return the exit code."""
    silent = False
    try:
        options = Options().parse_intermixed_args([*configuration(Path.home() / ".curlrc"), *words])
        silent = options.silent and not options.show_error
        to_file = options.output not in (None, "-")
        write: Callable[[bytes], object] = Path(options.output).write_bytes if to_file else sys.stdout.buffer.write
        for url in [*options.url, *options.urls]:
            write(answer(url, options))
    except (Failed, OSError) as error:
        code, told = error.args if isinstance(error, Failed) else (NOT_WRITTEN, error)
        if not silent:
            print(f"curl: ({code}) {told}", file=sys.stderr)
        return int(code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
