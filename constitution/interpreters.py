"""Inline code of other languages: what a reading of it says, and awk and sed, by their few ways to start programs."""

import re

__all__ = [
    "METADATA",
    "SED_INSERTS",
    "SED_SCRIPT",
    "SED_STARTS",
    "SED_WRITES",
    "Reading",
    "deeds_in",
    "read_awk",
    "read_tcl",
]

METADATA = re.compile(r"169\.254\.(169\.254|170\.2)|metadata\.google\.internal|100\.100\.100\.200|fd00:ec2::254")
"""Addresses at which a cloud gives a machine its keys."""

STATEMENTS = re.compile(
    r"(?i)\b(drop\s+(table|database|schema|owned)|truncate\s+(table\s+)?[\w\"`{]|delete\s+from\s+\S+\s*($|[;'\")]))"
    r"|\.drop_all\(|\bdropDatabase\(|\.flushall\(|\.flushdb\(|\bdeleteMany\(\s*\{\s*\}|\.drop_database\("
    r"|\.drop_collection\("
)
"""What loses a whole table, or a whole database, in inline code."""

CLOUD_CALLS = re.compile(
    r"\b(terminate_instances|delete_bucket|delete_db_instance|delete_stack|delete_table|delete_cluster"
    r"|delete_objects|delete_volume"
    r"|delete_snapshot|delete_user|delete_secret|schedule_key_deletion)\(|object_versions\.(all\(\)\.)?delete"
    r"|objects\.all\(\)\.delete"
)
POWER_CALLS = re.compile(r"\bCDLL\([^)]*\)\.(reboot|kill|syscall)\b|\blibc\.reboot\b|0x01234567|0xfee1dead", re.I)
DECODED_CODE = re.compile(
    r"(?i)\b(eval|exec|Function|instance_eval|assert|loadstring|load|create_function"
    r"|system)\b.{0,40}?\b(pack\s*\(?\s*['\"]H|decode_base64"
    r"|atob|base64_decode|gzinflate|hex2bin|str_rot13|fromCharCode|Base64\.(strict_|urlsafe_)?decode64"
    r"|Buffer\.from\([^)]*['\"](base64|hex)"
    r"|unpack\(?['\"]|unescape|b64decode|fromhex|decompress)",
    re.S,
)


HUBS = re.compile(
    r"\.?(?:upload_folder|upload_file|upload_large_folder|push_to_hub|create_repo|upload_fileobj|put_object|log_artifact)\("
)
"""Calls that hand files to others, by the names that libraries give them."""

DOWNLOADS = re.compile(r"\b(?:nltk\.download|snapshot_download|hf_hub_download|spacy\.cli\.download|gdown\.download)\(")


def deeds_in(code: str) -> list[str]:
    """Return what calls and statements within inline code lose, whatever its language."""
    kinds = (
        *(("database", STATEMENTS), ("cloud", CLOUD_CALLS), ("power", POWER_CALLS), ("fetched", DECODED_CODE)),
        *(("publish", HUBS), ("network", DOWNLOADS)),
    )
    return [deed for deed, words in kinds if words.search(code)]


AWK_STARTS = re.compile(r"\bsystem\s*\(\s*(?:\"([^\"]*)\")?|(?:\"([^\"]*)\"\s*)?\|\s*&?\s*getline|\|\s*\"([^\"]*)\"")
AWK_WRITES = re.compile(r">\s*\"([^\"]+)\"")
SED_SCRIPT = re.compile(r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e\s+([^\n]+)")
SED_PART = r"(?:(?!\1)[^\\\n]|\\.)*"  # up to the next separator, so that matching takes no longer than reading
SED_STARTS = re.compile(
    r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e(?:\s|$)"
    rf"|s([^\w\s\\]){SED_PART}\1({SED_PART})\1[gpiImM\d]*e"
)
SED_INSERTS = re.compile(r"(?:^|[;{}\n/\d$])\s*[iac]\\?\s*([^\n]+)")
SED_WRITES = re.compile(r"(?:^|[;{}\n\d$/gpI])\s*+[wW]\s+([/~.][^\s;}]+)")
TCL_STARTS = re.compile(r"\b(?:spawn|exec|system)\s+(?:-\w+\s+)*([^;\n\]}]+)")
TCL_DELETES = re.compile(r"\bfile\s+delete\s+(?:-force\s+)?(?:--\s+)?([^;\n\]}]+)")


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


def read_tcl(code: str) -> Reading:
    """Read Tcl and Expect: what they start, and what they delete."""
    reading = Reading()
    reading.scripts = [text.strip() for text in TCL_STARTS.findall(code)]
    reading.paths = [("delete_tree", path) for paths in TCL_DELETES.findall(code) for path in paths.split()]
    if re.search(r"\bsocket\s+\S+\s+\d+", code):
        reading.deeds.append("shell" if re.search(r"\bexec\b", code) else "network")
    if "$" in "".join(reading.scripts) or re.search(r"\b(eval|exec)\s+\$", code):
        reading.risks.append("run Tcl code that starts what cannot be known")
    return reading
