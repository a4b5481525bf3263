"""Inline code of other languages: what a reading of it says, and awk and sed, by their few ways to start programs."""

import re

__all__ = ["SED_SCRIPT", "SED_STARTS", "Reading", "read_awk"]

AWK_STARTS = re.compile(r"\bsystem\s*\(\s*(?:\"([^\"]*)\")?|(?:\"([^\"]*)\"\s*)?\|\s*&?\s*getline|\|\s*\"([^\"]*)\"")
AWK_WRITES = re.compile(r">\s*\"([^\"]+)\"")
SED_SCRIPT = re.compile(r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e\s+([^\n]+)")
SED_PART = r"(?:(?!\1)[^\\\n]|\\.)*"  # up to the next separator, so that matching takes no longer than reading
SED_STARTS = re.compile(
    r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e(?:\s|$)"
    rf"|s([^\w\s\\]){SED_PART}\1{SED_PART}\1[gpiImM\d]*e"
)


class Reading:
    """What inline code does: shell text that it starts, (kind, path) pairs that it touches, and whether it is risky.

    `deeds`: "network" (it reaches another machine), "leak" (it sends what is private there), "fetched" (it runs code
    from elsewhere), "shell" (it gives another machine a shell), "forks" (it starts itself without end).
    """

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.paths: list[tuple[str, str]] = []
        self.risks: list[str] = []
        self.deeds: list[str] = []


def read_awk(code: str) -> Reading:
    """Read awk: what it starts, and the files that it names behind `>`."""
    reading = Reading()
    reading.scripts = [text for found in AWK_STARTS.findall(code) for text in found if text]
    reading.paths = [("write", match[1]) for match in AWK_WRITES.finditer(code)]
    if re.search(r"[\"']/inet[46]?/(tcp|udp)/", code):
        reading.deeds.append("shell" if AWK_STARTS.search(code) else "network")
    if AWK_STARTS.search(code):
        reading.risks.append("run an awk program that starts others")
    return reading
