"""Which local variables of a suspended b-thread can still matter.

A local that is always written before it is read again is dead: two states that differ in dead locals only are the
same state. That goes for a cell too (a local that an inner function uses), as far as this code is concerned; whether
anybody else still holds the cell, code cannot tell. (And which cells may still be assigned: a b-thread that was
started meanwhile may read them.)

This is the classic backward dataflow analysis, on byte code: live before = used, or live after and not written.
Whatever is not understood counts as a use, so that a live variable is never taken for dead.
"""

import dis
from functools import cache
from types import CodeType

__all__ = ["assigns", "assigns_later", "live_locals"]

NEVER_FALLS_THROUGH = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
    | {"JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT"}
)
JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


@cache
def live_locals(code: CodeType, offset: int) -> frozenset[str]:
    """Return the locals and cells of `code` that it may read, or hand on, after it goes on from byte `offset`."""
    live, following = _live_before(code)
    return frozenset().union(*(live[after] for after in following[offset]))


@cache
def assigns_later(code: CodeType, offset: int, name: str) -> bool:
    """Tell whether `code`, or a function in it, may assign the cell `name` after it goes on from `offset`."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if any(name in closure.co_freevars and assigns(closure, name) for closure in inner):
        return True
    _, following = _live_before(code)
    assigning = {instruction.offset for instruction in dis.get_instructions(code) if _is_assignment(instruction, name)}
    reached: set[int] = set()
    waiting = list(following[offset])
    while waiting:
        position = waiting.pop()
        if position not in reached:
            reached.add(position)
            waiting += following[position]
    return not assigning.isdisjoint(reached)


@cache
def assigns(code: CodeType, name: str) -> bool:
    """Tell whether `code`, or a function in it, assigns the cell `name`."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return any(_is_assignment(instruction, name) for instruction in dis.get_instructions(code)) or any(
        name in closure.co_freevars and assigns(closure, name) for closure in inner
    )


def _is_assignment(instruction: dis.Instruction, name: str) -> bool:
    return instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval == name


@cache
def _live_before(code: CodeType) -> tuple[dict[int, frozenset[str]], dict[int, tuple[int, ...]]]:
    """Return what is live before each instruction, and which instructions may follow it."""
    instructions = list(dis.get_instructions(code))
    following = _following(code, instructions)
    effects = {instruction.offset: _reads_and_writes(instruction, code.co_cellvars) for instruction in instructions}
    live: dict[int, frozenset[str]] = {offset: frozenset() for offset in effects}
    changed = True
    while changed:
        changed = False
        for instruction in reversed(instructions):
            offset = instruction.offset
            reads, writes = effects[offset]
            after = frozenset().union(*(live[successor] for successor in following[offset]))
            before = reads | (after - writes)
            if before != live[offset]:
                live[offset] = before
                changed = True
    return live, following


def _following(code: CodeType, instructions: list[dis.Instruction]) -> dict[int, tuple[int, ...]]:
    """Return the instructions that may come next: in line, by jump, or as the handler of an exception."""
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    following = {}
    for position, instruction in enumerate(instructions):
        successors = [entry.target for entry in handlers if entry.start <= instruction.offset < entry.end]
        if instruction.opname not in NEVER_FALLS_THROUGH and position + 1 < len(instructions):
            successors.append(instructions[position + 1].offset)
        if instruction.opcode in JUMPS:
            successors.append(instruction.argval)
        following[instruction.offset] = tuple(successors)
    return following


def _reads_and_writes(instruction: dis.Instruction, cells: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the locals that an instruction reads, and those that it writes without reading them first.

    Whatever handles a cell other than to write into it may hand it on, and so counts as reading.
    """
    name = instruction.opname
    if instruction.argval in cells and "CONST" not in name:
        own = frozenset((instruction.argval,))
        return (frozenset(), own) if name == "STORE_DEREF" else (own, frozenset())
    if "FAST" not in name:
        return frozenset(), frozenset()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    if not set(names).isdisjoint(cells):
        return frozenset(names), frozenset()
    if name in ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_MAYBE_NULL"):
        return frozenset(), frozenset(names)
    if name == "STORE_FAST_LOAD_FAST":
        return frozenset(names[1:]) - frozenset(names[:1]), frozenset(names[:1])
    return frozenset(names), frozenset()
