"""Inline Python through its syntax tree: calls that start programs, delete, write, decode or reach the network."""

import ast
import copy
import re
import warnings
from functools import lru_cache

from constitution.analysis.other_code import Reading
from constitution.analysis.program_rows import METADATA
from constitution.zones import FOUND, UNKNOWN

__all__ = ["exhausts", "multiplies", "named", "read_python", "text_of", "text_of_number", "walked"]

MAX_CODE = 20_000


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS_OUT = _set("system popen call run Popen check_output check_call getoutput getstatusoutput")
STARTS = SHELLS_OUT | _set(
    """
    spawn spawnl spawnv execv execl execvp execlp execve posix_spawn create_subprocess_shell create_subprocess_exec
    startfile
    """
)
COMMON_NAMES = _set("run call spawn system")  # what other things are called, too
STARTERS = _set("os subprocess pty asyncio commands __import__ posix nt popen2")
DELETES_TREE = _set("rmtree removedirs move")
DELETES = _set("remove unlink rmdir truncate rename replace symlink link")
NETWORK = _set(
    """
    urllib requests httpx socket aiohttp ftplib smtplib paramiko telnetlib http urllib3 websocket websockets boto3
    webbrowser
    """
)
BY_ADDRESS = _set("urllib requests httpx aiohttp http urllib3 webbrowser")
FILE_METHODS = _set("read_text read_bytes write_text write_bytes open unlink rmdir chmod")
DECODES = _set("b64decode fromhex decodebytes urlopen decompress unhexlify b32decode a85decode")
FETCHED = DECODES | _set("get read loads decode text content")
PASSWORDS = _set("get_password get_credential getspnam getspall")
SEARCHES = _set("glob iglob rglob")
ENVIRONMENT_METHODS = _set("get setdefault pop update copy")
SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential")
LOCAL_URL = re.compile(r"^\w+://([^/@]*@)?(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)([:/]|$)")


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
    """Read Python by its syntax tree."""
    reading, tree = Reading(), _tree(code)
    if tree is None:
        reading.risks.append("run Python code that cannot be parsed")
        return reading
    nodes = list(ast.walk(named(tree)))
    names = _Names(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            _call(node, names, reading)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            reading.risks.extend(_risky_imports(node, names))
        elif isinstance(node, ast.Attribute) and node.attr == "environ" and node not in names.harmless:
            reading.risks.append("run Python code that reads the environment")
        reading.deeds.extend(_deeds(node))
    reading.risks.extend(_hidden_calls(nodes, names))
    if any("environment" in risk for risk in reading.risks) and any(" uses " in risk for risk in reading.risks):
        reading.deeds.append("leak")
    if any(" uses " in risk for risk in reading.risks) and not names.stay_here():
        reading.deeds.append("sends")
    if "socket" in names.modules and (names.called & (STARTS | {"dup2"})):
        reading.deeds.append("shell")
    return reading


def _deeds(node: ast.AST) -> list[str]:
    """Return what a node alone does to the machine."""
    if isinstance(node, ast.While | ast.ListComp | ast.GeneratorExp) and (_forks(node) or multiplies(node)):
        return ["forks"]
    if isinstance(node, ast.Constant) and METADATA.search(str(node.value)):
        return ["keys"]
    return ["grows"] if exhausts(node) else []


class _Names:
    """What the names of a program stand for: modules by alias, functions by where they are from."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        self.modules: dict[str, str] = {}
        self.imported: dict[str, str] = {}
        self.called: set[str] = set()
        self.addresses: list[str] = []
        self.harmless: set[ast.AST] = set()
        self.found: dict[str, str] = {}
        for node in nodes:
            self._take(node)

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self.modules.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            self.imported.update((alias.asname or alias.name, node.module or "") for alias in node.names)
        elif isinstance(node, ast.Call):
            self.called.add(_name_of(node))
            if isinstance(node.func, ast.Attribute) and node.func.attr in ENVIRONMENT_METHODS and _is_plain(node.args):
                self.harmless.add(node.func.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._take_loop(node)
        elif isinstance(node, ast.Subscript) and _is_plain([node.slice]):
            self.harmless.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "://" in node.value:
            self.addresses.append(node.value)

    def _take_loop(self, node: "ast.For | ast.comprehension") -> None:
        """`for f in glob.glob("*.tmp")`, `for p in Path("out").glob("*.log")`: something below a folder."""
        call = node.iter
        if (walk := walked(node)) is not None:
            self.found.update(walk)
            return
        if not (isinstance(call, ast.Call) and isinstance(node.target, ast.Name) and _name_of(call) in SEARCHES):
            return
        patterns, owners = _texts(call), _texts_of_owner(call)
        below = (patterns or [""])[0]
        folder = below.partition("*")[0].rpartition("/")[0] or ("/" if below.startswith("/") else ".")
        self.found[node.target.id] = f"{(owners or [''])[0] or '.'}/{FOUND}" if owners else f"{folder}/{FOUND}"

    def text_for(self, node: ast.Call) -> list[str]:
        """Return what a loop found, for `os.remove(f)` and `p.unlink()`."""
        named = [*node.args[:1], node.func.value if isinstance(node.func, ast.Attribute) else None]
        names = [part for name in named if name is not None for part in ast.walk(name)]
        return [self.found[name.id] for name in names if isinstance(name, ast.Name) and name.id in self.found][:1]

    def starts_programs(self, node: ast.Call) -> bool:
        """Tell whether a call starts a program, as `subprocess.run` does and `app.run` does not."""
        name = _name_of(node)
        if name not in STARTS:
            return False
        if not isinstance(node.func, ast.Attribute):
            return self.imported.get(name, "") in STARTERS or name not in COMMON_NAMES | {"spawn"}
        owner = _owner(node.func)
        module = self.modules.get(owner, owner)
        if module in ("CDLL", "PyDLL", "WinDLL", "LoadLibrary"):
            return True
        return (module in STARTERS and (module, name) != ("asyncio", "run")) or name not in COMMON_NAMES

    def stay_here(self) -> bool:
        """Tell whether every address in the program is this machine's."""
        return bool(self.addresses) and all(map(LOCAL_URL.match, self.addresses))


REACHING = STARTERS | _set("os shutil pathlib sys builtins importlib ctypes socket runpy code")
HARMFUL = (
    STARTS | DELETES | DELETES_TREE | _set("open symlink link chmod chown mkfifo exec eval compile interact run_path")
)
INNER = _set("__dict__ __globals__ __builtins__ __subclasses__ __getattribute__ methodcaller attrgetter interact")


def _hidden_calls(nodes: list[ast.AST], names: _Names) -> list[str]:
    """Return why it cannot be told what is called: only names of modules, and attributes called directly, are read."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    risks = list[str]()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in REACHING and any(a.name == "*" for a in node.names):
            risks.append(f"run Python code that imports everything of {node.module!r}")
        elif isinstance(node, ast.Attribute) and (node.attr in INNER or _hands_on(node, names, called)):
            risks.append(f"run Python code that passes {node.attr!r} on")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript | ast.Call):
            risks.append("run Python code that calls what it computes")
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and _name_of(node.value) in COMPUTES:
            risks.append("run Python code that looks names up")
    return risks


COMPUTES = _set("globals locals vars")


def _hands_on(node: ast.Attribute, names: _Names, called: set[int]) -> bool:
    """Tell whether a function that starts or deletes is named and not called there, or `sys.modules` is used."""
    owner = _owner(node)
    module = names.modules.get(owner, owner)
    if (module, node.attr) == ("sys", "modules"):
        return True
    return module in REACHING and node.attr in HARMFUL and id(node) not in called


def _is_plain(arguments: list[ast.expr]) -> bool:
    """Tell whether the name of a variable is written out, and is not that of a secret."""
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and not SECRET_NAME.search(str(first.value))


def _name_of(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _forks(loop: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) and _name_of(node) == "fork" for node in ast.walk(loop))


def _risky_imports(node: ast.Import | ast.ImportFrom, names: _Names) -> list[str]:
    """Modules that reach the network, and harmful functions that get another name."""
    module = _network_module(node)
    if module and not (module.partition(".")[0] in BY_ADDRESS and names.stay_here()):
        return [f"run Python code that uses {module!r}"]
    if isinstance(node, ast.Import) or node.module not in ("os", "subprocess", "shutil"):
        return []
    renamed = {alias.name for alias in node.names if alias.asname} & (STARTS | DELETES | DELETES_TREE)
    return [f"run Python code that renames {name!r}" for name in sorted(renamed)]


def _network_module(node: ast.Import | ast.ImportFrom) -> str:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    harmless = ("urllib.parse", "http.server", "http.HTTPStatus", "urllib.robotparser")
    named = [name for name in names if name.split(".")[0] in NETWORK and not name.startswith(harmless)]
    if isinstance(node, ast.ImportFrom) and node.module == "http":
        named = [name for name in named if any(alias.name != "HTTPStatus" for alias in node.names)]
    return named[0] if named else ""


def _call(node: ast.Call, names: _Names, reading: Reading) -> None:
    name, texts = _name_of(node), _texts(node)
    if names.starts_programs(node):
        reading.scripts.extend(texts)
        if _gets_code(node):
            reading.deeds.append("fetched")
        if not _is_written_out(node, name):
            reading.risks.append(f"run Python code that starts programs ({name})")
    elif name in DELETES_TREE | DELETES and _is_file_call(node):
        texts = texts or _texts_of_owner(node) or names.text_for(node)
        reading.paths.extend(("delete_tree" if name in DELETES_TREE else "delete", text) for text in texts or [""])
    elif name == "open" or name in FILE_METHODS:
        reading.paths.extend(_file_use(node, name, texts or names.text_for(node)))
    elif name in ("exec", "eval") and _gets_code(node):
        reading.deeds.append("fetched")
    elif name in ("kill", "killpg") and node.args and text_of_number(node.args[0]) == -1:
        reading.deeds.append("kills")
    elif name in PASSWORDS:
        reading.deeds.append("passwords")
    elif _is_obscure(node, name, names):
        reading.risks.append(f"run Python code that uses {name!r}")


def _gets_code(node: ast.Call) -> bool:
    """Tell whether `exec(...)` runs what was fetched or decoded right there."""
    inner = [part for argument in node.args for part in ast.walk(argument)]
    called = {_name_of(part) for part in inner if isinstance(part, ast.Call)}
    named = {part.attr for part in inner if isinstance(part, ast.Attribute)}
    return bool(called & DECODES) or bool((called | named) & FETCHED and called & _set("urlopen get read"))


def _is_written_out(node: ast.Call, name: str) -> bool:
    """Tell whether all that is started is literal, so that the command can be judged instead of the call."""
    if name not in SHELLS_OUT or any(keyword.arg in ("cwd", "executable", "env", None) for keyword in node.keywords):
        return False
    first = node.args[0] if node.args else None
    if isinstance(first, ast.List | ast.Tuple):
        return bool(first.elts) and all(_word(element) is not None for element in first.elts)
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def _is_obscure(node: ast.Call, name: str, names: _Names) -> bool:
    """Tell whether a call hides what will run."""
    attribute = isinstance(node.func, ast.Attribute)
    owner = _owner(node.func) if isinstance(node.func, ast.Attribute) else ""
    if name in ("eval", "exec", "__import__", "compile"):
        return not attribute or owner in ("builtins", "__builtins__")
    if name in ("loads", "load"):
        return names.modules.get(owner, owner) in ("pickle", "marshal", "dill", "cloudpickle") or (
            name == "loads" and not attribute
        )
    if name in ("getattr", "import_module"):
        named = node.args[-1 if name == "import_module" else 1 :][:1]
        return not (named and isinstance(named[0], ast.Constant) and named[0].value not in STARTS | STARTERS)
    return name in ("run_path", "urlopen") and not names.stay_here()


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
    owner = _owner(node.func) if isinstance(node.func, ast.Attribute) else ""
    if name == "open" and owner in ("os", "posix"):
        return [("write", text) for text in texts[:1] or [""]]
    if name != "open":
        texts = _texts_of_owner(node)
        kind = {"write": "write", "unlin": "delete", "rmdir": "delete", "chmod": "write"}.get(name[:5], "read")
        return [(kind, text) for text in texts]
    mode = texts[1] if len(texts) > 1 else "r"
    return [("write" if set(mode) & set("wax+") else "read", text) for text in texts[:1]]


def _texts_of_owner(node: ast.Call) -> list[str]:
    """Return the texts of `Path("x")` in `Path("x").unlink()`."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is not None and (text := text_of(owner)) is not None:
        return [text]
    return _texts(owner) if isinstance(owner, ast.Call) else []


def _word(node: ast.expr) -> str | None:
    """Return the word of a command that an element of a list stands for; `sys.executable` is Python."""
    if isinstance(node, ast.Attribute) and node.attr == "executable" and getattr(node.value, "id", "") == "sys":
        return "python3"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _texts(node: ast.Call) -> list[str]:
    """Return the texts among a call's arguments, as far as they are written out; a list is joined as a command."""
    texts = []
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        if (text := text_of(argument)) is not None:
            texts.append(text)
        elif isinstance(argument, ast.List | ast.Tuple):
            parts = [word for element in argument.elts if (word := _word(element)) is not None]
            texts.append(" ".join("'" + part.replace("'", "'\\''") + "'" for part in parts))
    return texts


HUGE = 10**9
"""Elements, or bytes: nobody makes as many by the way."""

SAME = frozenset(
    ["expanduser", "expandvars", "abspath", "realpath", "Path", "PurePath", "PosixPath", "normpath", "resolve", "str"]
)
HOME = frozenset(["home", "gethomedir"])
GROWS = frozenset(["append", "extend", "add", "insert", "write", "appendleft"])


def text_of(node: ast.expr) -> str | None:
    """Return the text that an expression stands for, with `UNKNOWN` for parts; None where nothing is written out."""
    if isinstance(node, ast.Constant):
        value = node.value
        return value if isinstance(value, str) else value.decode("latin-1") if isinstance(value, bytes) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        return _joined([node.left, node.right], "/" if isinstance(node.op, ast.Div) else "")
    if isinstance(node, ast.JoinedStr):
        return _joined([part.value if isinstance(part, ast.FormattedValue) else part for part in node.values], "")
    if isinstance(node, ast.Subscript):
        return "~" if _is_home_variable(node.slice) else None
    return _called(node) if isinstance(node, ast.Call) else None


def named(tree: ast.Module) -> ast.Module:
    """Return a program in which names that are set once, to a text, stand as that text."""
    values: dict[str, list[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            texts = values[node.targets[0].id]
            if len(texts) == 1:
                texts[0] = text_of(node.value)
    known = {name: texts[0] for name, texts in values.items() if len(texts) == 1 and texts[0] is not None}
    return _Named(known).visit(copy.deepcopy(tree)) if known else tree


class _Named(ast.NodeTransformer):
    """Puts texts in place of names."""

    def __init__(self, known: "dict[str, str]") -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Take one name."""
        if isinstance(node.ctx, ast.Load) and node.id in self.known:
            return ast.copy_location(ast.Constant(self.known[node.id]), node)
        return node


def _called(node: ast.Call) -> str | None:
    """`expanduser("~/x")`, `os.path.join(a, "b")`, `Path.home()`, `Path("a").joinpath("b")`, `os.getenv("HOME")`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SAME:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        argument = node.args[0] if node.args else owner
        return text_of(argument) if argument is not None else None
    if name in HOME and not node.args:
        return "~"
    if name in ("getenv", "get") and node.args and _is_home_variable(node.args[0]):
        return "~"
    if name == "join" and not (isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)):
        return _joined(node.args, "/")
    if name == "joinpath" and isinstance(node.func, ast.Attribute):
        return _joined([node.func.value, *node.args], "/")
    return None


def _is_home_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("HOME", "USERPROFILE")


def _joined(nodes: list[ast.expr], separator: str) -> str | None:
    texts = [text_of(node) for node in nodes]
    if all(text is None for text in texts):
        return None
    return separator.join(UNKNOWN if text is None else text for text in texts)


def walked(loop: "ast.For | ast.comprehension") -> dict[str, str] | None:
    """Return what the names of `for root, dirs, files in os.walk(FOLDER)` stand for: something below the folder."""
    call = loop.iter
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("walk", "scandir", "listdir")
    ):
        return None
    folder = text_of(call.args[0]) if call.args else "."
    if folder is None or (call.func.attr == "walk" and not isinstance(loop.target, ast.Tuple)):
        return None
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    return {first.id: f"{folder}/{FOUND}"} if isinstance(first, ast.Name) else None


def exhausts(node: ast.AST) -> bool:
    """Tell whether a node makes something huge, or a loop without end only makes more."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sizes = [_number(side) for side in (node.left, node.right)]
        sequence = any(isinstance(side, ast.List | ast.Tuple) or _is_text(side) for side in (node.left, node.right))
        return sequence and any(size is not None and size >= HUGE for size in sizes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("bytearray", "list"):
        return any((_number(argument) or 0) >= HUGE for argument in node.args)
    if not (isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value):
        return False
    inner = list(ast.walk(node))
    ends = any(
        isinstance(part, ast.Break | ast.Return | ast.Raise | ast.Try) or _calls(part, "sleep exit input get recv")
        for part in inner
    )
    return not ends and any(
        _calls(part, " ".join(GROWS)) or (isinstance(part, ast.AugAssign) and not _is_number(part.value))
        for part in inner
    )


def multiplies(node: ast.AST) -> bool:
    """Tell whether a loop without end starts processes or threads and never waits for any."""
    if not (isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value):
        return False
    inner = [part for statement in node.body for part in ast.walk(statement)]
    starts = any(_calls(part, "Popen Process Thread create_subprocess_exec create_subprocess_shell") for part in inner)
    waits = "wait communicate join sleep poll input get recv accept readline acquire"
    return starts and not any(isinstance(part, ast.Break | ast.Return) or _calls(part, waits) for part in inner)


def _calls(node: ast.AST, names: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in names.split()


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def text_of_number(node: ast.expr) -> int | None:
    """Return a whole number that is written out, with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    return _number(node)


def _number(node: ast.expr) -> int | None:
    """Return the number that constants, products and powers make; as good as endless when it would be too large."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _number(node.left), _number(node.right)
    if left is None or right is None or left < 0 or right < 0:
        return None
    if isinstance(node.op, ast.Pow):
        return HUGE if right > 64 or left > HUGE else left**right
    if isinstance(node.op, ast.LShift):
        return left << min(right, 64)
    return left * right if isinstance(node.op, ast.Mult) else None
