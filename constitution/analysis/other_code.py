"""Inline code of other languages by its words: calls on literal texts are understood, others are risks."""

import re

from constitution.analysis.program_rows import METADATA
from constitution.tables import is_a

__all__ = [
    "SED_INSERTS",
    "SED_READS",
    "SED_SCRIPT",
    "SED_STARTS",
    "SED_WRITES",
    "Reading",
    "deeds_in",
    "read_any",
    "read_awk",
    "read_code",
    "read_tcl",
]


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


MAX_CODE = 20_000

LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
KINDS = {
    "delete_tree": "rmtree|remove_tree|rm_rf|rm_r|rimraf|rimraf\\.sync|remove_dir|remove_entry_secure|emptyDirSync",
    "rm": "rmSync|fs\\.rm|fsp\\.rm|promises\\.rm|removeSync|rm",
    "delete": "unlinkSync|unlink|rmdirSync|rmdir|File\\.delete|os\\.remove|Deno\\.remove|FileUtils\\.rm",
    "write": "writeFileSync|writeFile|appendFileSync|appendFile|file_put_contents|File\\.write|IO\\.write|truncateSync"
    "|createWriteStream|Deno\\.writeTextFile",
    "read": "readFileSync|readFile|file_get_contents|File\\.read|IO\\.read|File\\.readlines|createReadStream|readlink",
}
STARTS = (
    "system|execSync|execFileSync|execFile|exec|spawnSync|spawn|popen|shell_exec|passthru|proc_open|os\\.execute|qx"
    "|do shell script"
)
CALL = re.compile(
    rf"(?<![\w.])(?:[\w.]+(?:\(\s*+{LITERAL}\s*+\))?\s*+(?:\.|::))?"
    rf"({'|'.join((*KINDS.values(), STARTS))})\b\s*+\(?\s*+(?:(?:Dir\.)?glob\s*+\(?\s*+)?"
    rf"(\[?\s*+{LITERAL}(?:[\s,\[\]]+{LITERAL})*\s*+\]?)([^()]{{0,80}})"
)
COMPUTED_DELETE = re.compile(
    r"\b(rm_rf|rm_r|rmtree|remove_tree|rimraf|rmSync|unlink|removeSync|remove_dir|emptyDirSync|File\.delete|os\.remove)\b"
)
ROOTS = re.compile(r"['\"]([/~][^'\"\n]{0,80})['\"]")
QX = re.compile(r"\b(?:qx|%x|exec|system)\s*+([{(/|!])(.*?)[})/|!]", re.S)
BACKTICKS = re.compile(r"`([^`]*)`")
OPENED = re.compile(rf"\bopen\s*+\(?\s*+[^,;)]*+,\s*+['\"]\s*+(\+?[<>]{{1,2}})[^'\"]*['\"]\s*+,\s*+({LITERAL})")
OPENED_AT_ONCE = re.compile(r"\bopen\s*+\(?\s*+[\w$]+\s*+,\s*+['\"]\s*+(>{1,2}|\+<)\s*+([^'\"$]+)['\"]")
OTHERS = re.compile(
    r"\b(system|exec|execSync|execFile|execFileSync|spawn|spawnSync|popen|qx|unlink|unlinkSync|rmtree|rmdir"
    r"|rmdirSync|rmSync"
    r"|remove_tree|rm_rf|rm_r|FileUtils|remove|delete|child_process|shell_exec|passthru|proc_open|eval"
    r"|IO\.popen|os\.execute|fork"
    r"|socket|Socket|TCPSocket|http|https|fetch|LWP|writeFileSync|writeFile|appendFileSync|File\.write"
    r"|file_put_contents|syscall"
    r"|kill|truncate|mainModule|_load|public_send|__send__|const_get)\b|new\s+Function\b|\.send\b|&\{|&\$\w|\$\w+\("
    r"|(?:require\([^)]*\)|\b(?:fs|fsp|cp|process))\s*\[|`|open\s*+\(?[^)]{0,200}['\"]\s*+\+?>|\|\s*getline|print[^;}]*\|\s*\""
)
EVALUATES = re.compile(
    r"\b(eval|exec|Function|instance_eval|assert|loadstring|load|runInThisContext|include|require)\b\s*[({ ]"
)
FETCHES = re.compile(
    r"\b(https?\.get|fetch\(|LWP|HTTP::Tiny|open-uri|URI\.open|Net::HTTP|socket\.http)|\b(get"
    r"|file_get_contents|open|include|require)\b[\s(]*['\"]https?:"
)
SOCKETS = re.compile(
    r"\b(Socket|TCPSocket|fsockopen|IO::Socket\w*|createConnection|net\.connect|new net\.Socket|socket\.tcp|connect\()"
)
SHELLS = re.compile(r"/bin/(ba|z|da|k)?sh|\b(exec|spawn|system|proc_open|shell_exec|popen|execute)\b|STDIN|cmd\.exe")
HOME = re.compile(
    r"\bhomedir\(\)|process\.env\.HOME|process\.env\[['\"]HOME['\"]\]|(?:os|require\(['\"]os['\"]\))\.homedir\(\)|Dir\.home"
    r"|ENV\[['\"]HOME['\"]\]|\$ENV\{['\"]?HOME['\"]?\}|getenv\(['\"]HOME['\"]\)|os\.getenv\(['\"]HOME['\"]\)"
)
FORKS = re.compile(
    r"\b(pcntl_)?fork\b[\s()]*(while|until|for)\b|\b(while|loop|until|for)\b[^;]{0,40}\b(pcntl_)?fork\b"
    r"|\bfork\(\s*__filename|\b(spawn|fork|execFile)\(\s*process\.(argv\[[01]\]|execPath)"
    r"|\bwhile\s*\(\s*(?:true|1)\s*\)(?:(?!await|break|return).){0,60}\b(?:spawn|fork|exec|execFile)\("
    r"|\b(while|loop|for)\b[^;]{0,30}(os\.execute|system|spawn|exec)\b[^;\n]{0,60}&\s*['\"]"
)
GROWS = re.compile(
    r"(?:while\s*\(?\s*(?:1|true)\b|for\s*\(\s*;\s*;|\bloop\b|while\s+true\s+do)(?:(?!break|return|exit|last).){0,80}?"
    r"(?:\.push\b|\bpush\b|<<|\.concat\b|\+=|\.\.=|table\.insert|Buffer\.alloc|append)|[xX*]\s*\(?1e1[0-9]"
    r"|\*\s*1_?0{9,}"
    r"|\.repeat\(\s*(?:1e(?:9|1\d)|2\*\*3)",
    re.S,
)
KILLS = re.compile(r"\bkill\b\W{0,3}['\"]?\w+['\"]?\s*(?:,|=>)\s*-1\b|\bkill\(\s*-1\b|posix_kill\(\s*-1\b")
SENDS = re.compile(
    r"\bfetch\(|https?\.(request|get)\(|axios|\bcurl_|Net::HTTP|HTTParty|LWP|HTTP::Tiny|open-uri|URI\.open"
    r"|\$http|WebClient"
    r"|(file_get_contents|fopen|get)\s*\(?\s*['\"]https?:|socket\.http|Socket|fsockopen|createConnection|net\.connect"
)
ENVIRONMENT = re.compile(
    r"process\.env(?!\s*[.\[])|\bENV(?:\.to_|\.inspect|\.map|\.each|\))|%ENV|getenv\(\s*\)|\$_(?:ENV"
    r"|SERVER)\b(?!\[)|os\.environ"
)
JOINED = re.compile(r"'([^'\\]*)'\s*[+.]\s*(?:'([^'\\]*)'|\"([^\"\\$#]*)\")")
IMPORTED = re.compile(r"(?:const|let|var)\s*+\{[^{}]*+\}\s*+=\s*+require\([^()]*+\)")
LOCAL_URL = re.compile(r"(?:\b(?:fetch|https?\.get|get)\b[\s(]*)?['\"]https?://(localhost|127\.0\.0\.1|\[::1\])[:/'\"]")


def read_code(code: str, *, backticks: bool = True) -> Reading:
    """Read Perl, Ruby, JavaScript, PHP or Lua by its words. `backticks`: they start programs, as they do in Perl."""
    reading = Reading()
    if len(code) > MAX_CODE:
        reading.risks.append("run inline code that is too long to read")
        return reading
    code = JOINED.sub(lambda match: "'" + "".join(part or "" for part in match.groups()) + "'", HOME.sub("'~'", code))
    rest = CALL.sub(lambda match: _call(match, reading), code)
    rest = OPENED.sub(lambda match: _opened(match, reading), rest)
    reading.paths += [("write", match[2].strip()) for match in OPENED_AT_ONCE.finditer(code)]
    if backticks:
        reading.scripts += [match[2] for match in QX.finditer(code)] + BACKTICKS.findall(code)
    else:
        rest = rest.replace("`", "'")
    reading.deeds += _deeds(code)
    rest = LOCAL_URL.sub("", rest)
    if reading.scripts:
        rest = IMPORTED.sub("", rest).replace("child_process", "")
    if COMPUTED_DELETE.search(rest):
        reading.paths.extend(("delete_tree", path) for path in ROOTS.findall(code))
    if match := OTHERS.search(rest):
        reading.risks.append(f"run inline code that uses {match[0][:20]!r}")
    return reading


def _deeds(code: str) -> list[str]:
    deeds = []
    if EVALUATES.search(code) and FETCHES.search(code):
        deeds.append("fetched")
    if SOCKETS.search(code) and SHELLS.search(code):
        deeds.append("shell")
    deeds += [deed for deed, words in (("grows", GROWS), ("keys", METADATA)) if words.search(code)]
    if SENDS.search(LOCAL_URL.sub("", code)):
        deeds += ["sends"] if ENVIRONMENT.search(code) is None else ["leak"]
    deeds += ["kills"] if KILLS.search(code) else []
    return [*deeds, "forks"] if FORKS.search(code) else deeds


def _call(match: re.Match[str], reading: Reading) -> str:
    """Note a call on literal texts; return what is left of it to look at: nothing when all of it is understood."""
    name, texts, after = match[1], re.findall(LITERAL, match[2]), match[3]
    words = [_content(text) for text in texts]
    computed = any(_is_computed(text) for text in texts)
    if re.fullmatch(STARTS, name):
        reading.scripts.append(words[0] if len(words) == 1 else " ".join(map(_quoted, words)))
        whole = not computed and re.match(r"\s*[,\]]*\s*(\{|$|;|,\s*\{|['\"])|\s*$", after) is not None
        return f" {after}" if whole else match[0]
    kind = next(kind for kind, names in KINDS.items() if re.fullmatch(names, name))
    if kind == "rm":
        kind = "delete_tree" if "recursive" in after.lower() else "delete"
    if name == "unlink" and "recursive" in after.lower():
        kind = "delete_tree"
    touched = texts if kind.startswith("delete") else texts[:1]
    reading.paths.extend((kind, "" if _is_computed(text) else _content(text)) for text in touched)
    return f" {after}"


def _opened(match: re.Match[str], reading: Reading) -> str:
    """`open(my $file, '>', 'path')`."""
    kind = "write" if ">" in match[1] or "+" in match[1] else "read"
    reading.paths.append((kind, "" if _is_computed(match[2]) else _content(match[2])))
    return " "


def _content(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1])


def _is_computed(literal: str) -> bool:
    return literal[0] != "'" and re.search(r"[$@]\w|[$#]\{", literal) is not None


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


TEXT = r"\"((?:[^\"\\\n]|\\.){1,400})\"|'((?:[^'\\\n]|\\.){1,400})'"
GROUP = re.compile(r"[\s,()\[\]:]*")
MACROS = re.compile(r"\b(?:(?:syscmd|esyscmd)\(`?([^')]*)|write18\s*\{([^}]*)\})")
PRINTS = re.compile(
    r"(?:print\w*|echo|puts|disp|display|write\w*|format|message|log|inspect|printf|cat)[\s(\"'.]{0,4}$", re.I
)
DELETES = re.compile(r"(?i)\b(?:delete|remove|unlink|rmdir|rm|trash|destroy|erase)\w*|delete-tree")


def read_any(code: str) -> Reading:
    """Read code: texts that begin like a command are commands; paths beside words of deletion are deleted."""
    reading = Reading()
    if len(code) > 20_000:
        reading.risks.append("run inline code that is too long to read")
        return reading
    reading.scripts += [text for found in MACROS.findall(code) for text in found if text]
    deletes = DELETES.search(code) is not None
    for words, before in _groups(code):
        if words[0].split()[:1] and is_a(words[0].split()[0].rpartition("/")[2], "quoted_command"):
            if not PRINTS.search(before):
                reading.scripts.append(words[0] if len(words) == 1 else " ".join(map(_any_code_quoted, words)))
        elif deletes:
            reading.paths += [("delete_tree", word) for word in words if re.match(r"[/~]\S*$", word)]
    return reading


def _groups(code: str) -> list[tuple[list[str], str]]:
    """Return texts in quotes that follow each other, as the words of one list, and what stands before them."""
    groups, end = list[tuple[list[str], str]](), -1
    for match in re.finditer(TEXT, code):
        text = next(part for part in match.groups() if part is not None)
        if groups and GROUP.fullmatch(code, end, match.start()) is not None:
            groups[-1][0].append(text)
        else:
            groups.append(([text], code[max(0, match.start() - 24) : match.start()]))
        end = match.end()
    return groups


def _any_code_quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


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
AWK_COMPUTES = re.compile(r"\bprintf?\b[^;}\n\"]*(?:\"[^\"]*\"[^;}\n\"]*)*>>?\s*\(?[A-Za-z_]\w*")
AWK_WRITES = re.compile(r">\s*\"([^\"]+)\"")
SED_SCRIPT = re.compile(r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e\s+([^\n]+)")
SED_PART = r"(?:(?!\1)[^\\\n]|\\.)*"  # up to the next separator, so that matching takes no longer than reading
SED_STARTS = re.compile(
    r"(?:^|[;{}\n])\s*+[\d,$]*+(?:/[^/]*/)?+\s*+e(?:\s|$)"
    rf"|s([^\w\s\\]){SED_PART}\1({SED_PART})\1[gpiImM\d]*e"
)
SED_INSERTS = re.compile(r"(?:^|[;{}\n/\d$])\s*[iac]\\?\s*([^\n]+)")
SED_READS = re.compile(r"(?:^|[;{}\n\d$/])\s*+[rR]\s*+([/~.][^\s;}]+)")
SED_WRITES = re.compile(r"(?:^|[;{}\n\d$/gpI])\s*+[wW]\s+([/~.][^\s;}]+)")
TCL_STARTS = re.compile(r"\b(?:spawn|exec|system)\s+(?:-\w+\s+)*([^;\n\]}]+)")
TCL_DELETES = re.compile(r"\bfile\s+delete\s+(?:-force\s+)?(?:--\s+)?([^;\n\]}]+)")


def read_awk(code: str) -> Reading:
    """Read awk: what it starts, and the files that it names behind `>`."""
    reading = Reading()
    reading.scripts = [text for found in AWK_STARTS.findall(code) for text in found if text]
    reading.paths = [("write", match[1]) for match in AWK_WRITES.finditer(code)]
    if re.search(r"[\"']/inet[46]?/(tcp|udp)/", code):
        reading.deeds.append("shell" if AWK_STARTS.search(code) else "network")
    if AWK_COMPUTES.search(code):
        reading.risks.append("write files whose names it computes")
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
