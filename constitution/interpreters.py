"""Inline code of other languages: Python through its syntax tree, others by the words that do harm."""

import ast
import re
import warnings
from functools import lru_cache

__all__ = ["SED_STARTS", "Reading", "read_awk", "read_code", "read_python"]

MAX_CODE = 20_000

STARTS = frozenset(
    [
        "system",
        "popen",
        "call",
        "run",
        "Popen",
        "check_output",
        "check_call",
        "getoutput",
        "getstatusoutput",
        "spawn",
        "spawnl",
        "spawnv",
        "execv",
        "execl",
        "execvp",
        "execlp",
        "execve",
        "posix_spawn",
        "create_subprocess_shell",
        "create_subprocess_exec",
    ]
)
DELETES_TREE = frozenset(["rmtree", "removedirs", "move"])
DELETES = frozenset(["remove", "unlink", "rmdir", "truncate", "rename", "replace"])
OBSCURE = frozenset(
    [
        "eval",
        "exec",
        "compile",
        "__import__",
        "b64decode",
        "fromhex",
        "decodebytes",
        "loads",
        "getattr",
        "import_module",
        "run_path",
        "urlopen",
    ]
)
NETWORK = frozenset(
    ["urllib", "requests", "httpx", "socket", "aiohttp", "ftplib", "smtplib", "paramiko", "telnetlib", "http"]
)
FILE_METHODS = frozenset(["read_text", "read_bytes", "write_text", "write_bytes", "open", "unlink", "rmdir", "chmod"])

OTHERS = re.compile(
    r"\b(system|exec|execSync|execFile|execFileSync|spawn|spawnSync|popen|qx|unlink|unlinkSync|rmtree|rmdir|rmdirSync|rmSync|remove_tree"
    r"|rm_rf|rm_r|FileUtils|remove|delete|child_process|shell_exec|passthru|proc_open|eval|IO\.popen|os\.execute|fork|socket|Socket"
    r"|TCPSocket|http|https|fetch|LWP|writeFileSync|writeFile|appendFileSync|File\.write|file_put_contents|syscall|kill|truncate)\b"
    r"|`|open\s*\(?[^)]*['\"]\s*\+?>|\|\s*getline|print[^;}]*\|\s*\""
)
CALLED_SHELL = re.compile(
    r"(?:system|exec|execSync|popen|spawnSync|spawn|qx|shell_exec|passthru|execute|getline|eval)\b\s*\(?\s*(['\"`{])(.*?)(?:\1|\})",
    re.S,
)
AWK_STARTS = re.compile(r"\bsystem\s*\(\s*(?:\"([^\"]*)\")?|(?:\"([^\"]*)\"\s*)?\|\s*&?\s*getline|\|\s*\"([^\"]*)\"")
AWK_WRITES = re.compile(r">\s*\"([^\"]+)\"")
SED_STARTS = re.compile(r"(?:^|[;{}\n])\s*[\d,$]*(?:/[^/]*/)?\s*e(?:\s|$)|s([^\w\s\\]).*?\1.*?\1[gpiImM\d]*e")
BACKTICKS = re.compile(r"`([^`]*)`")


class Reading:
    """What inline code does: shell text that it starts, (kind, path) pairs that it touches, and whether it is risky."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.paths: list[tuple[str, str]] = []
        self.risks: list[str] = []


def read_awk(code: str) -> Reading:
    """Read awk: what it starts, and the files that it names behind `>`."""
    reading = Reading()
    reading.scripts = [text for found in AWK_STARTS.findall(code) for text in found if text]
    reading.paths = [("write", match[1]) for match in AWK_WRITES.finditer(code)]
    if AWK_STARTS.search(code):
        reading.risks.append("run an awk program that starts others")
    return reading


def read_code(code: str) -> Reading:
    """Read Perl, Ruby, JavaScript, PHP or Lua by its words."""
    reading = Reading()
    reading.scripts = [match[2] for match in CALLED_SHELL.finditer(code)] + BACKTICKS.findall(code)
    if match := OTHERS.search(code):
        reading.risks.append(f"run inline code that uses {match[0][:20]!r}")
    return reading


@lru_cache(maxsize=256)
def _tree(code: str) -> "ast.Module | None":
    if len(code) > MAX_CODE or _depth(code) > 60:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _depth(code: str) -> int:
    """Return how deep brackets and prefixes nest at most; the compiler's own stack is limited."""
    depth = deepest = 0
    for character in code:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return max(
        deepest, max((len(run) for run in re.findall(r"(?:[-+~]|not\s|lambda\b[^:]*:|await\s)+", code)), default=0) // 4
    )


def read_python(code: str) -> Reading:
    """Read Python by its syntax tree: calls that start programs, delete, write, decode or reach the network."""
    reading, tree = Reading(), _tree(code)
    if tree is None:
        reading.risks.append("run Python code that cannot be parsed")
        return reading
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _call(node, reading)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            reading.risks.extend(_risky_imports(node))
        elif isinstance(node, ast.Attribute) and node.attr == "environ":
            reading.risks.append("run Python code that reads the environment")
    return reading


def _risky_imports(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Modules that reach the network, and harmful functions that get another name."""
    if (module := _network_module(node)) != "":
        return [f"run Python code that uses {module!r}"]
    if isinstance(node, ast.Import) or node.module not in ("os", "subprocess", "shutil"):
        return []
    names = {alias.name for alias in node.names if alias.asname} & (STARTS | DELETES | DELETES_TREE)
    return [f"run Python code that renames {name!r}" for name in sorted(names)]


def _network_module(node: ast.Import | ast.ImportFrom) -> str:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return next((name for name in names if name.split(".")[0] in NETWORK and not name.startswith("urllib.parse")), "")


def _call(node: ast.Call, reading: Reading) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = _texts(node)
    if name in STARTS and not (
        name == "run" and isinstance(node.func, ast.Attribute) and _owner(node.func) == "asyncio"
    ):
        reading.scripts.extend(texts)
        reading.risks.append(f"run Python code that starts programs ({name})")
    elif name in DELETES_TREE | DELETES and _is_file_call(node):
        texts = texts or _texts_of_owner(node)
        reading.paths.extend(("delete_tree" if name in DELETES_TREE else "delete", text) for text in texts or [""])
    elif name == "open" or name in FILE_METHODS:
        reading.paths.extend(_file_use(node, name, texts))
    elif name in OBSCURE and not _is_json(node):
        reading.risks.append(f"run Python code that uses {name!r}")


def _is_json(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "loads" and _owner(node.func) == "json"


def _is_file_call(node: ast.Call) -> bool:
    """Tell `os.remove(x)` and `Path(x).unlink()` from `items.remove(x)` and `text.replace(a, b)`."""
    if not isinstance(node.func, ast.Attribute):
        return True
    name = node.func.attr
    if name in ("remove", "replace", "rename", "move", "truncate"):
        return _owner(node.func) in ("os", "shutil", "Path")
    return True


def _owner(func: ast.Attribute) -> str:
    value = func.value
    if isinstance(value, ast.Call):
        value = value.func
    return value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")


def _file_use(node: ast.Call, name: str, texts: list[str]) -> list[tuple[str, str]]:
    if name != "open":
        texts = _texts_of_owner(node)
        kind = {"write": "write", "unlin": "delete", "rmdir": "delete", "chmod": "write"}.get(name[:5], "read")
        return [(kind, text) for text in texts]
    mode = texts[1] if len(texts) > 1 else "r"
    return [("write" if set(mode) & set("wax+") else "read", text) for text in texts[:1]]


def _texts_of_owner(node: ast.Call) -> list[str]:
    """Return the texts of `Path("x")` in `Path("x").unlink()`."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return _texts(owner) if isinstance(owner, ast.Call) else []


def _texts(node: ast.Call) -> list[str]:
    """Return the constant texts among a call's arguments; a list of texts is joined as a command."""
    texts = []
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            texts.append(argument.value)
        elif isinstance(argument, ast.List | ast.Tuple):
            parts = [e.value for e in argument.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            texts.append(" ".join("'" + part.replace("'", "'\\''") + "'" for part in parts))
    return texts
