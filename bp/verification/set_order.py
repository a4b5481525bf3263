"""The order of a set is not to be depended on: of texts and most other values it is another in every process.

A set may be asked, compared, joined with others and sorted. Iterating over it is refused, as are its text and handing
it on to what is not known to take it as a set. What code iterates over is followed through its byte code, by the names
of variables, attributes and functions; which names hold sets is seen while it runs, but for those of sets that are
made in the code itself. So an iteration may be refused because another value of that name is a set; none is missed.
"""

import dis
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from bp.statements import BThreadFunction
from bp.verification.fingerprint import JUMPS, NEVER_FALLS_THROUGH, base_in_c

__all__ = ["HOLDERS", "SetOrder", "global_", "holds_set", "local"]

Names = frozenset[str]
Stack = tuple[Names, ...]
NO_NAMES: Names = frozenset()
A_SET: Names = frozenset({"a set"})  # made in the code itself; nothing is known of its elements
HOLDERS = frozenset({set, frozenset, tuple, list, dict})
ITERATES = frozenset({"GET_ITER", "GET_YIELD_FROM_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"})
TELLS = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"})
ANSWERS = frozenset({"CONTAINS_OP", "COMPARE_OP", "IS_OP", "UNARY_NOT", "YIELD_VALUE", "BUILD_STRING", "GET_LEN"})
FETCHES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
ADDS = frozenset({"LIST_APPEND", "MAP_ADD", "LIST_EXTEND", "DICT_UPDATE", "DICT_MERGE"})
TAKES_ONE = FETCHES | {"FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "BEFORE_WITH", "GET_LEN"}
GIVES_NONE = ("STORE", "POP", "DELETE", "RETURN_VALUE", "RAISE", "RERAISE", "SET_", "DICT_", *sorted(ADDS))
CALLS = frozenset({"PRECALL"} if sys.version_info < (3, 12) else {"CALL", "CALL_KW"})
AS_SETS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference", "freeze"})
SETS_FIELD = frozenset({"__setattr__", "_setattr", "setattr"})
AS_ANSWERS = frozenset({"__hash__", "add", "all", "any", "bool", "discard", "hash", "isdisjoint", "isinstance"})
AS_ANSWERS |= {"issubset", "issuperset", "len", "remove", "sorted"}
BY_NAME = frozenset({"getattr", "attrgetter"})
BY_FIELD = frozenset({"__dict__", "asdict", "astuple", "vars"})


class Call(NamedTuple):
    """A call: the names of what is called, and those of what it is given."""

    of: Names
    given: Names


class Flow(NamedTuple):
    """What a piece of code does with what it knows by names: sets of names that it iterates over, calls, and which
    names get what other names hold."""

    iterated: frozenset[Names]
    calls: frozenset[Call]
    assigned: frozenset[tuple[str, Names]]
    makes_sets: bool  # whether it assigns, gives away or iterates over one that is made in the code itself


class SetOrder:
    """Names that hold sets, and what code iterates over."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._holding: set[str] = set(A_SET)
        self._read: list[tuple[CodeType, Mapping[str, Any]]] = []  # each function that was read, with its globals

    def read(self, code: CodeType, names: Mapping[str, Any]) -> str | None:
        """Read what a function iterates over; `names` are its globals. Return what is wrong, if anything is."""
        self._read.append((code, names))
        return self._finding() if len(self._holding) > 1 or _flow(code).makes_sets else None

    def meet(self, held: Iterable[tuple[str, Any]]) -> str | None:
        """Learn the values of some names. Return what is wrong, if anything is."""
        new = [name for name, value in held if holds_set(value)]
        if self._holding.issuperset(new):
            return None
        self._holding.update(new)
        return self._finding()

    def _finding(self) -> str | None:
        assigned = [pair for code, _ in self._read for pair in _flow(code).assigned]
        size = 0
        while size < len(self._holding):
            size = len(self._holding)
            self._holding.update(name for name, given in assigned if given & self._holding)
        for code, names in self._read:
            flow = _flow(code)
            unknown = (call.given for call in flow.calls if not _is_read(call.of, names))
            for given in (*flow.iterated, *unknown):
                for name in sorted(given & self._holding):
                    return f"{code.co_qualname} depends on the order of {name.partition(' of ')[0]}"
        return None


def holds_set(value: Any) -> bool:
    """Return whether a value is, or holds as an item, a set with an order."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is set or kind is frozenset:
            if len(value) > 1:
                return True
            waiting += value
        elif kind is tuple or kind is list:
            waiting += value
        elif kind is dict:
            waiting += (*value, *value.values())
    return False


def local(name: str, code: CodeType) -> str:
    """Return the name of a variable of a function, which the functions inside it share."""
    return f"{name} of {code.co_qualname.partition('.<locals>')[0]}"


def global_(name: str, code: CodeType) -> str:
    """Return the name of a global that a function reads."""
    return f"{name} of {code.co_filename}"


def _is_read(called: Names, names: Mapping[str, Any]) -> bool:
    """Return whether a call is of a function whose code is read, so that its parameters are met."""
    if len(called) != 1:
        return False
    value: Any = names.get(*called)
    value = getattr(value, "__wrapped__", value)
    if str(getattr(value, "__module__", "")).partition(".")[0] in sys.stdlib_module_names:
        return False
    return isinstance(value, FunctionType | BThreadFunction) or (isinstance(value, type) and base_in_c(value) is object)


# What flows where in a function: every position is looked at with the names that each place of its stack may hold.


@cache
def _flow(code: CodeType) -> Flow:
    instructions = [*dis.get_instructions(code)]
    following = {one.offset: after.offset for one, after in pairwise(instructions)}
    by_offset = {one.offset: one for one in instructions}
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    reading = _Reading(code)
    stacks: dict[int, Stack] = {}
    waiting: list[tuple[int, Stack]] = [(instructions[0].offset, ())]
    while waiting:
        offset, stack = waiting.pop()
        known = stacks.get(offset)
        stack = stack if known is None else tuple(map(frozenset.union, known, stack))
        if stack == known:
            continue
        stacks[offset], one = stack, by_offset[offset]
        after = reading.after(one, stack)
        if one.opname not in NEVER_FALLS_THROUGH and offset in following:
            waiting.append((following[offset], after))
        if one.opcode in JUMPS:
            height = len(stack) + dis.stack_effect(one.opcode, one.arg, jump=True)
            waiting.append((one.argval, (after + stack[len(after) :])[:height]))
        for handler in handlers:
            if handler.start <= offset < handler.end:
                raised = (NO_NAMES,) * (1 + handler.lasti)
                waiting.append((handler.target, stack[: handler.depth] + raised))
    given = (*reading.iterated, *(call.given for call in reading.calls), *(held for _, held in reading.assigned))
    makes_sets = any(names >= A_SET for names in given)
    return Flow(frozenset(reading.iterated), frozenset(reading.calls), frozenset(reading.assigned), makes_sets)


class _Reading:
    """What was found in the byte code of a function so far."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self.iterated: set[Names] = set()
        self.calls: set[Call] = set()
        self.assigned: set[tuple[str, Names]] = set()

    def after(self, one: dis.Instruction, stack: Stack) -> Stack:
        """Return the stack after an instruction; note what it does."""
        name, argument = one.opname, one.arg or 0
        effect = dis.stack_effect(one.opcode, one.arg, jump=False)
        if name in ("EXTENDED_ARG", "CACHE", "NOP", "RESUME"):
            return stack
        if name == "RETURN_GENERATOR":
            return (*stack, NO_NAMES)
        if name == "SWAP":
            return (*stack[:-argument], stack[-1], *stack[1 - argument : -1], stack[-argument])
        if name == "COPY":
            return (*stack, stack[-argument])
        if name in CALLS:
            return self._after_call(stack, argument + (name == "CALL_KW"), effect)
        taken = _taken(name, effect)
        kept, operands = stack[: len(stack) - taken], stack[len(stack) - taken :]
        given = frozenset().union(*operands)
        self._note(one, stack, operands)
        if name in ADDS:  # what a list or a dictionary gets, it holds
            kept = (*kept[:-argument], kept[-argument] | given, *kept[len(kept) - argument + 1 :])
        if name == "LOAD_METHOD":
            return (*kept, _result(one, given, self._code), given)  # what it is called on, too
        is_variable = name.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF"))
        return kept + (self._variables(one) if is_variable else _result(one, given, self._code),) * (taken + effect)

    def _note(self, one: dis.Instruction, stack: Stack, operands: Stack) -> None:
        name = one.opname
        if name in ITERATES or name in TELLS:
            self.iterated.add(operands[0])
        elif name == "CALL_FUNCTION_EX":
            self.iterated.add(frozenset().union(*operands[-1 - (one.arg or 0) :]))
        elif name == "STORE_SUBSCR":
            self.assigned |= {(container.removeprefix("'"), operands[0]) for container in operands[1] | operands[2]}
        elif name.startswith("STORE") and operands and not name.endswith("SLICE"):
            for variable in self._variables(one) if "FAST" in name or "DEREF" in name else (one.argval,):
                self.assigned.add((variable, operands[0]))

    def _variables(self, one: dis.Instruction) -> Names:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        return frozenset(local(name, self._code) for name in names)

    def _after_call(self, stack: Stack, arguments: int, effect: int) -> Stack:
        at = len(stack) - arguments
        called, given = stack[at - 2] | stack[at - 1], frozenset().union(*stack[at:])
        if any(name.startswith("<") for name in called):  # a comprehension gets its iterator like this
            iterated = frozenset(name for name in called if not name.startswith("<"))
            self.assigned.add((local(".0", self._code), iterated))
        result = called | given
        called = frozenset(name.partition(" of ")[0] for name in called)
        texts = frozenset(text[1:] for text in given if text.startswith("'"))
        result |= called
        if called & AS_SETS:
            result = A_SET
        elif called & AS_ANSWERS and (arguments < 2 or "sorted" not in called):  # equal keys stay in their order
            result = NO_NAMES
        elif called & BY_NAME:
            result = texts or A_SET
        elif called & BY_FIELD:
            result = A_SET
        elif called & SETS_FIELD:
            self.assigned |= {(name, given) for name in texts}
        elif given:
            self.calls.add(Call(called, given))
        return stack[: at - 2] + (result,) * (arguments + 2 + effect)


def _taken(name: str, effect: int) -> int:
    """Return how many places of the stack an instruction takes off."""
    if name in TAKES_ONE:
        return 1
    if name.startswith(("LOAD", "PUSH")):
        return 0
    return max(0, -effect if name.startswith(GIVES_NONE) else 1 - effect)


def _result(one: dis.Instruction, given: Names, code: CodeType) -> Names:
    """Return the names of what an instruction gives."""
    name, value = one.opname, one.argval
    if name in ANSWERS or name in TELLS or name in ("LOAD_CLOSURE", "LOAD_BUILD_CLASS"):
        return NO_NAMES
    if name in FETCHES:
        return A_SET if value in BY_FIELD else frozenset({value})
    if name == "LOAD_CONST":
        return _of_constant(value)
    if name == "MATCH_CLASS":
        return frozenset(text[1:] for text in given if text.startswith("'"))
    if name in ("LOAD_GLOBAL", "LOAD_NAME"):
        return frozenset({global_(value, code)})
    return A_SET if name in ("BUILD_SET", "SET_ADD") else given


def _of_constant(value: Any) -> Names:
    if isinstance(value, CodeType):
        return frozenset({value.co_name})
    if holds_set(value):
        return A_SET
    texts = value if isinstance(value, tuple) else (value,)
    return frozenset("'" + text for text in texts if isinstance(text, str))
