"""What expressions of Python stand for, as far as it is written out: texts, paths, loops over folders, huge values."""

import ast
import copy

from constitution.zones import FOUND, UNKNOWN

__all__ = ["exhausts", "multiplies", "named", "text_of", "text_of_number", "walked"]

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
