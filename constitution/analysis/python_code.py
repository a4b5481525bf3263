"""Inline Python, by its syntax tree: calls that start programs, delete, write, decode or use the network."""

import ast
import copy
import re
import warnings
from functools import cache, lru_cache

from constitution.analysis.other_code import ELSEWHERE, MAX_CODE, SECRET_NAME, Reading, quoted
from constitution.analysis.program_rows import METADATA
from constitution.effects import UNKNOWN
from constitution.tables import pattern, table
from constitution.tables.rows import changes_commands
from constitution.zones import FOUND


@cache
def _known(*keys: str) -> frozenset[str]:
    """Return the words of some lists of the table."""
    return frozenset(word for key in keys for word in table("languages")["python"][key].split())


STARTS = ("shells_out", "starts")
DELETES = ("deletes_tree", "deletes")
HARMFUL = (*STARTS, *DELETES, "harmful")
"""The lists of functions on files and processes, which are understood only in direct calls."""


@cache
def _attributes(module: str) -> frozenset[str] | None:
    """Return the harmless attributes of a module; None if all are."""
    listed = table("languages")["python"]["attributes"].get(module)
    return None if listed is None else frozenset(listed.split()) | _known(*HARMFUL)


REMOTE_URL = pattern(r"^(https?|s?ftp|wss?|s3|gs|hdfs|abfss?)://")
LOCAL_URL = pattern(r"^\w+://([^/@]*@)?(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)([:/]|$)")


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
    """Return the nesting depth of brackets and prefixes; the compiler's stack is limited."""
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
            reading.risks.extend(_risky_modules(node, names, nodes))
        elif isinstance(node, ast.Attribute) and node.attr == "environ" and node not in names.harmless:
            reading.risks.append("run Python code that reads the environment")
        reading.deeds.extend(_deeds(node))
    reading.risks.extend(_hidden_uses(nodes, names))
    if any("environment" in risk for risk in reading.risks) and any(" uses " in risk for risk in reading.risks):
        reading.deeds.append("leak")
    if any(" uses " in risk for risk in reading.risks) and not names.stay_here():
        reading.deeds.append("sends")
    if "socket" in names.modules and (names.called & (_known(*STARTS) | {"dup2"})):
        reading.deeds.append("shell")
    return reading


def _deeds(node: ast.AST) -> list[str]:
    if isinstance(node, ast.While | ast.ListComp | ast.GeneratorExp) and _forks(node):
        return ["forks"]
    if isinstance(node, ast.Constant) and METADATA.search(str(node.value)):
        return ["keys"]
    return ["grows"] if _grows(node) else []


class _Names:
    """The meaning of names in a program: modules by alias, functions by their module."""

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
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in _known("environment_methods")
                and _is_plain(node.args)
            ):
                self.harmless.add(node.func.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._take_loop(node)
        elif isinstance(node, ast.Subscript) and _is_plain([node.slice]):
            self.harmless.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "://" in node.value:
            self.addresses.append(node.value)

    def _take_loop(self, node: "ast.For | ast.comprehension") -> None:
        """`for f in glob.glob("*.tmp")`, `for p in Path("out").glob("*.log")`: files below a folder."""
        call, target = node.iter, node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
        if not (isinstance(call, ast.Call) and isinstance(target, ast.Name) and _name_of(call) in _known("searches")):
            return
        if _name_of(call) == "walk" and target is node.target:
            return  # each of these is a tuple
        below = (_texts(call) or [UNKNOWN if call.args else "."])[0]
        owner = (_texts_of_owner(call) or [""])[0]
        start, star, _ = below.partition("*")
        folder = (start.rpartition("/")[0] or ("/" if start.startswith("/") else ".")) if star else below
        self.found[target.id] = f"{owner or folder}/{FOUND}"

    def text_for(self, node: ast.Call) -> list[str]:
        """Return the path of a loop variable, for `os.remove(f)` and `p.unlink()`."""
        named = [*node.args[:1], node.func.value if isinstance(node.func, ast.Attribute) else None]
        names = [part for name in named if name is not None for part in ast.walk(name)]
        return [self.found[name.id] for name in names if isinstance(name, ast.Name) and name.id in self.found][:1]

    def starts_programs(self, node: ast.Call) -> bool:
        """Return whether a call starts a program, as `subprocess.run` does and `app.run` does not."""
        name = _name_of(node)
        if name not in _known(*STARTS):
            return False
        if not isinstance(node.func, ast.Attribute):
            return self.imported.get(name, "") in _known("starters") or name not in _known("common_names") | {"spawn"}
        owner = _owner(node.func)
        module = self.modules.get(owner, owner)
        if module in ("CDLL", "PyDLL", "WinDLL", "LoadLibrary"):
            return True
        return (module in _known("starters") and (module, name) != ("asyncio", "run")) or name not in _known(
            "common_names"
        )

    def archives(self) -> bool:
        """Return whether the program creates archives."""
        return not {"tarfile", "zipfile"}.isdisjoint([*self.modules.values(), *self.imported.values()])

    def stay_here(self) -> bool:
        """Return whether every address in the program is local."""
        return bool(self.addresses) and all(map(LOCAL_URL.match, self.addresses))


def _hidden_uses(nodes: list[ast.AST], names: _Names) -> list[str]:
    """Return why a called function is unknown: only names of modules, and attributes called directly, are read."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    risks = list[str]()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            risks.extend(_hidden_imports(node))
        elif isinstance(node, ast.Attribute):
            risks.extend(_hidden_attribute(node, names, called))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript | ast.Call):
            risks.append("run Python code that calls a computed function")
        elif isinstance(node, ast.Name) and id(node) not in called and _is_passed_on(node, names):
            risks.append(f"run Python code that passes {node.id!r} on")
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
            looks_up = _name_of(node.value) in _known("looks_up")
            risks.extend(["run Python code that looks names up"] if looks_up else [])
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            risks.extend(_sets_variable(node))
    return risks


def _risky_modules(node: ast.Import | ast.ImportFrom, names: _Names, nodes: list[ast.AST]) -> list[str]:
    """Return why an import needs approval: it starts programs, loads code, or uses the network."""
    named = [(alias.name, alias.asname or alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        named = [(f"{node.module or ''}.{name}", "") for name, _ in named if not node.level]
    risky = [module for module, name in named if _is_risky(module, names.stay_here()) and not _only_shows(name, nodes)]
    return [f"run Python code that uses {module!r}" for module in risky]


def _is_risky(module: str, stays_here: bool) -> bool:
    root = module.partition(".")[0]
    reaches = root in _known("network") and not module.startswith(tuple(_known("local")))
    return root in _known("asked") or (reaches and not (stays_here and root in _known("by_address")))


def _only_shows(module: str, nodes: list[ast.AST]) -> bool:
    """Return whether only the version or place of a module is used."""
    shown = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in SHOWN}
    used = [id(node) for node in nodes if isinstance(node, ast.Name) and node.id == module]
    return bool(used) and shown.issuperset(used)


SHOWN = frozenset(["gethostname", "getfqdn", "__version__", "__file__", "__doc__", "__name__", "__path__"])


def _hidden_imports(node: ast.ImportFrom) -> list[str]:
    module, imported = node.module or "", [alias.name for alias in node.names]
    reaching, allowed = module in _known("reaching"), _attributes(module)
    if reaching and "*" in imported:
        return [f"run Python code that imports everything of {module!r}"]
    hidden = [name for name in imported if allowed is not None and name not in allowed]
    hidden += [name for name in imported if module and name in _known("reaching") - {"code", "io"}]
    hidden += [alias.name for alias in node.names if reaching and alias.asname and alias.name in _known(*HARMFUL)]
    return [f"run Python code that uses '{module}.{name}'" for name in hidden]


def _hidden_attribute(node: ast.Attribute, names: _Names, called: set[int]) -> list[str]:
    """Return why an attribute needs approval: it leads into the interpreter or another module, or is passed on."""
    owner = _owner(node)
    module = names.modules.get(owner, owner)
    named = isinstance(node.value, ast.Name) and owner in names.modules
    allowed = _attributes(module) if named else None
    from_module = named or names.imported.get(owner, "") in _known("reaching")
    if node.attr in _known("inner") or (module, node.attr) == ("sys", "modules"):
        return [f"run Python code that uses {node.attr!r}"]
    if id(node) not in called and from_module and node.attr in _known(*HARMFUL):
        return [f"run Python code that passes {node.attr!r} on"]
    if allowed is not None and node.attr not in allowed:
        return [f"run Python code that uses '{module}.{node.attr}'"]
    through = node.attr.lstrip("_") in _known("reaching") - {"code", "io"} and module != "asyncio"
    if through and ast.unparse(node).partition(".")[0] in names.modules.keys() | names.imported.keys():
        return [f"run Python code that reaches {node.attr!r} through another module"]
    return []


def _is_passed_on(node: ast.Name, names: _Names) -> bool:
    """Return whether `open`, or an imported function on files, is named without a call."""
    if not isinstance(node.ctx, ast.Load):
        return False
    if node.id in ("open", "exec", "eval", "compile", "__import__", "breakpoint"):
        return True
    return names.imported.get(node.id, "") in _known("reaching") and node.id in _known(*HARMFUL)


def _sets_variable(node: ast.Subscript) -> list[str]:
    """`os.environ["PATH"] = ...`: changes which programs are started later."""
    if getattr(node.value, "attr", getattr(node.value, "id", "")) != "environ":
        return []
    name = str(node.slice.value) if isinstance(node.slice, ast.Constant) else ""
    return [f"run Python code that sets {name or 'a variable'}"] if not name or changes_commands(name) else []


def _is_plain(arguments: list[ast.expr]) -> bool:
    """Return whether the name of a variable is a literal, and not that of a secret."""
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and not SECRET_NAME.search(str(first.value))


def _name_of(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_endless(node: ast.AST, ends: frozenset[str]) -> bool:
    """Return whether a node is an endless loop: nothing leaves it, and it calls nothing that waits or ends."""
    if not (isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value):
        return False
    inner = list(ast.walk(node))
    return not _called_in(node) & ends and not any(isinstance(part, ast.Break | ast.Return) for part in inner)


def _called_in(node: ast.AST) -> set[str]:
    return {_name_of(part) for part in ast.walk(node) if isinstance(part, ast.Call)}


def _forks(loop: ast.AST) -> bool:
    """Return whether an endless loop forks, or starts processes or threads and never waits for any."""
    called = _called_in(loop)
    return "fork" in called or bool(called & MULTIPLIES and _is_endless(loop, WAITS))


def _grows(node: ast.AST) -> bool:
    """Return whether a node creates a huge value, or is an endless loop that only allocates."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        sequence = any(isinstance(side, ast.List | ast.Tuple) or _is_of(side, (str, bytes)) for side in sides)
        return sequence and any(_number(side) >= HUGE for side in sides)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("bytearray", "list"):
        return any(_number(argument) >= HUGE for argument in node.args)
    if not _is_endless(node, PAUSES) or any(isinstance(part, ast.Raise | ast.Try) for part in ast.walk(node)):
        return False
    adds = (part for part in ast.walk(node) if isinstance(part, ast.AugAssign))
    return bool(_called_in(node) & GROWS) or any(not _is_of(part.value, (int, float)) for part in adds)


def _is_of(node: ast.expr, kinds: tuple[type, ...]) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, kinds)


def _number(node: ast.expr) -> int:
    """Return the value of constants, products and powers, at most `HUGE`; 0 for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if not isinstance(node, ast.BinOp):
        return 0
    left, right = _number(node.left), _number(node.right)
    if isinstance(node.op, ast.Pow):
        return HUGE if right > 64 or left > HUGE else left**right
    if isinstance(node.op, ast.LShift):
        return left << min(right, 64)
    return left * right if isinstance(node.op, ast.Mult) else 0


HUGE = 10**9
"""Elements or bytes; more than a program allocates by accident."""

GROWS = frozenset(["append", "extend", "add", "insert", "write", "appendleft"])
PAUSES = frozenset(["sleep", "exit", "input", "get", "recv"])
MULTIPLIES = frozenset(["Popen", "Process", "Thread", "create_subprocess_exec", "create_subprocess_shell"])
WAITS = frozenset("wait communicate join sleep poll input get recv accept readline acquire".split())  # noqa: SIM905


def _call(node: ast.Call, names: _Names, reading: Reading) -> None:
    name, texts = _name_of(node), _texts(node)
    if names.starts_programs(node):
        reading.scripts.extend(texts)
        if not _is_written_out(node, name):
            reading.risks.append(f"run Python code that starts programs ({name})")
    elif name in _known(*DELETES) and _is_file_call(node):
        kind = "delete_tree" if name in _known("deletes_tree") else "delete"
        found = [*texts, *_texts_of_owner(node)] or names.text_for(node)
        reading.paths.extend((kind, text) for text in found or [""])
    elif name in _known("copies") and _owner(node.func) == "shutil":
        reading.paths.extend(("write", text) for text in texts[1:2] or [""])
        reading.paths.extend(("read", text) for text in texts[:1])
    elif name == "open" or name in _known("file_methods"):
        reading.paths.extend(_file_use(node, name, texts, names))
    elif (
        name in _known("network_calls")
        or _names_address(name, texts)
        or (not _deed_of(node, name, names) and _is_obscure(node, name, names))
    ):
        reading.risks.append(f"run Python code that uses {name!r}")
    else:
        reading.paths.extend(_named_places(node, name, texts, names))
    reading.deeds.extend(_deed_of(node, name, names))
    if name == "kill" and node.args and (number := _number(node.args[0])) > 0:
        reading.scripts.append(f"kill {number}")


def _deed_of(node: ast.Call, name: str, names: _Names) -> list[str]:
    """Return the effect of a call beside files: it runs code, ends every process, or shows a password."""
    if (names.starts_programs(node) or name in ("exec", "eval")) and _gets_code(node):
        return ["fetched"]
    if name in ("kill", "killpg") and node.args and ast.unparse(node.args[0]) == "-1":
        return ["kills"]
    return ["passwords"] if name in _known("passwords") else []


def _named_places(node: ast.Call, name: str, texts: list[str], names: _Names) -> list[tuple[str, str]]:
    """Return the outside places named in an unknown call that is not read-only."""
    if name in ("insert", "append", "extend") and _owner(node.func) == "path":
        return [("search_path", text) for text in texts]
    looks = name in _known("looks") | SAME | HOME and not (name in ("add", "write") and names.archives())
    return [("unknown_program", text) for text in texts if not looks and ELSEWHERE.match(text)]


def _names_address(name: str, texts: list[str]) -> bool:
    """`pandas.read_csv("https://example.com/x")`: an address in a call that is not read-only."""
    remote = any(REMOTE_URL.match(text) and not LOCAL_URL.match(text) for text in texts)
    return remote and name not in _known("looks") | SAME


def _gets_code(node: ast.Call) -> bool:
    """Return whether `exec(...)` runs an expression that downloads or decodes."""
    inner = [part for argument in node.args for part in ast.walk(argument)]
    called = {_name_of(part) for part in inner if isinstance(part, ast.Call)}
    named = {part.attr for part in inner if isinstance(part, ast.Attribute)}
    return bool(called & _known("decodes")) or bool(
        (called | named) & (_known("decodes") | _known("fetched")) and called & {"urlopen", "get", "read"}
    )


def _is_written_out(node: ast.Call, name: str) -> bool:
    """Return whether a started command is literal, so that it can be judged instead of the call."""
    if name not in _known("shells_out") or any(
        keyword.arg in ("cwd", "executable", "env", None) for keyword in node.keywords
    ):
        return False
    first = node.args[0] if node.args else None
    if isinstance(first, ast.List | ast.Tuple):
        return bool(first.elts) and all(_word(element) is not None for element in first.elts)
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def _is_obscure(node: ast.Call, name: str, names: _Names) -> bool:
    """Return whether a call hides the code that will run."""
    attribute, owner = isinstance(node.func, ast.Attribute), _owner(node.func)
    if name in _known("loaders"):
        return not _texts(node) or any(text.startswith(("/", "~", "..")) for text in _texts(node))
    if name in ("eval", "exec", "__import__", "compile", "breakpoint"):
        return not attribute or owner in ("builtins", "__builtins__")
    if name in _known("unpickles") or any(map(_allows_code, node.keywords)):
        return True
    if name in _known("runs_text") and names.modules.get(owner, names.imported.get(name)) in _known("text_runners"):
        return True
    if name == "load" and names.modules.get(owner, owner) == "yaml":
        return not any("Safe" in ast.unparse(part) for part in [*node.args[1:], *node.keywords])
    if name in ("loads", "load"):
        return names.modules.get(owner, owner) in _known("pickles") or (name == "loads" and not attribute)
    if name in ("getattr", "import_module"):
        named = node.args[-1 if name == "import_module" else 1 :][:1]
        return not (named and isinstance(named[0], ast.Constant) and named[0].value not in _known(*STARTS, "starters"))
    return name in ("run_path", "urlopen") and not names.stay_here()


def _allows_code(keyword: ast.keyword) -> bool:
    """`allow_pickle=True`, `weights_only=False`, `trust_remote_code=True`: loaded data may run code."""
    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else True
    return (
        keyword.arg in ("allow_pickle", "trust_remote_code", "shell_escape") if value else keyword.arg == "weights_only"
    )


def _is_file_call(node: ast.Call) -> bool:
    """Return whether a method is one of files: `os.remove(x)`, `Path(x).unlink()`, not `items.remove(x)`."""
    of_others = ("remove", "replace", "rename", "move", "truncate")
    return getattr(node.func, "attr", "") not in of_others or _owner(node.func) in ("os", "shutil", "Path")


def _owner(func: ast.expr) -> str:
    """Return the name in front of an attribute: `os` of `os.remove`, `Path` of `Path("x").unlink`; "" of others."""
    value = getattr(func, "value", None)
    value = value.func if isinstance(value, ast.Call) else value
    return value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")


def _file_use(node: ast.Call, name: str, texts: list[str], names: _Names) -> list[tuple[str, str]]:
    owner = _owner(node.func)
    found = names.text_for(node)
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(not k.arg for k in node.keywords):
        return [("write", "")]
    if name == "open" and owner in ("os", "posix"):
        return [("write", text) for text in (texts or found)[:1] or [""]]
    owned = _texts_of_owner(node)
    if name == "open" and not owned:
        first = text_of(node.args[0]) if node.args else None
        named = [first] if first is not None else found or ([""] if _is_told(node) else [])
        return [(_mode(node, 1), text) for text in named or texts[:1]]
    owned = owned or (texts[:1] if owner in ("os", "posix") else found)
    kind = {"unlin": "delete", "rmdir": "delete", "read_": "read"}.get(name[:5], "write")
    return [(_mode(node, 0) if name == "open" else kind, text) for text in owned]


def _is_told(node: ast.Call) -> bool:
    """Return whether a file's path comes from the input or the environment: `open(input())`."""
    parts = [part for argument in node.args[:1] for part in ast.walk(argument)]
    return any(isinstance(part, ast.Call) and _name_of(part) in TOLD for part in parts) or any(
        isinstance(part, ast.Attribute) and part.attr in ("stdin", "environ") for part in parts
    )


TOLD = frozenset(["input", "read", "readline", "getenv", "recv", "decode", "pop", "chr"])


def _mode(node: ast.Call, position: int) -> str:
    """Return the kind of file use by `open`, from the mode argument at a position, or by name."""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    modes = named or node.args[position : position + 1]
    text = text_of(modes[0]) if modes else "r"
    return "read" if text is not None and not set(text) & set("wax+") else "write"


def _texts_of_owner(node: ast.Call) -> list[str]:
    """Return the texts of `Path("x")` in `Path("x").unlink()`."""
    owner = getattr(node.func, "value", None)
    if owner is not None and (text := text_of(owner)) is not None:
        return [text]
    return _texts(owner) if isinstance(owner, ast.Call) else []


def _word(node: ast.expr) -> str | None:
    """Return the command word of a list element; `sys.executable` is Python."""
    if isinstance(node, ast.Attribute) and node.attr == "executable" and getattr(node.value, "id", "") == "sys":
        return "python3"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _texts(node: ast.Call) -> list[str]:
    """Return the literal texts among a call's arguments; a list is joined as a command."""
    texts = []
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        if (text := text_of(argument)) is not None:
            texts.append(text)
        elif isinstance(argument, ast.List | ast.Tuple):
            parts = [word for element in argument.elts if (word := _word(element)) is not None]
            texts.append(" ".join(map(quoted, parts)))
    return texts


SAME = frozenset(
    ["expanduser", "expandvars", "abspath", "realpath", "Path", "PurePath", "PosixPath", "normpath", "resolve", "str"]
)
HOME = frozenset(["home", "gethomedir"])


def text_of(node: ast.expr) -> str | None:
    """Return the value of a text expression, with `UNKNOWN` for parts; None if no part is literal."""
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
    """Return a program with names assigned once, to a text, replaced by it, and with the own names of path classes."""
    stored, texts, aliases = list[str](), dict[str, str | None](), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = text_of(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module == "pathlib":
            aliases.update((alias.asname, alias.name) for alias in node.names if alias.asname)
    known = {name: text for name, text in texts.items() if text is not None and stored.count(name) == 1}
    return _Named(known, aliases).visit(copy.deepcopy(tree)) if known or aliases else tree


class _Named(ast.NodeTransformer):
    """Replaces names by texts, and aliases by names."""

    def __init__(self, known: dict[str, str], aliases: dict[str, str]) -> None:
        self.known = known
        self.aliases = aliases

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Take one name."""
        if isinstance(node.ctx, ast.Load) and node.id in self.known:
            return ast.copy_location(ast.Constant(self.known[node.id]), node)
        return ast.copy_location(ast.Name(self.aliases.get(node.id, node.id), node.ctx), node)


def _called(node: ast.Call) -> str | None:
    """`expanduser("~/x")`, `os.path.join(a, "b")`, `Path.home()`, `Path("a").joinpath("b")`, `os.getenv("HOME")`."""
    name, owner = _name_of(node), getattr(node.func, "value", None)
    if name in SAME:
        argument = node.args[0] if node.args else owner
        return text_of(argument) if argument is not None else None
    if name in HOME and not node.args:
        return "~"
    if name in ("getenv", "get") and node.args and _is_home_variable(node.args[0]):
        return "~"
    if name == "join" and not isinstance(owner, ast.Constant):
        return _joined(node.args, "/")
    return _joined([owner, *node.args], "/") if name == "joinpath" and owner is not None else None


def _is_home_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("HOME", "USERPROFILE")


def _joined(nodes: list[ast.expr], separator: str) -> str | None:
    texts = [text_of(node) for node in nodes]
    if all(text is None for text in texts):
        return None
    return separator.join(UNKNOWN if text is None else text for text in texts)
