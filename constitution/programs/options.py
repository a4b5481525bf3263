"""How the words of a command become options and operands: clusters split, values attached, `--` obeyed."""

from attrs import frozen

__all__ = ["Line", "has_any", "read_line"]

NONE = frozenset[str]()


@frozen
class Line:
    """A command line after reading: option names, their values, and what remains. The program word is not in it."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def value_of(self, *names: str) -> tuple[str, ...]:
        """Return the values of the named options, in order."""
        return tuple([value for name, value in self.values if name in names]) if self.values else ()


def read_line(words: list[str], takes: frozenset[str], *, long_style: bool = False, to_operand: bool = False) -> Line:
    """Read the words behind a program.

    `takes` are the options whose value may be the next word. With `long_style` one dash does not mean a cluster
    (find, terraform, java). With `to_operand` reading ends at the first operand: it and all behind it are operands.
    """
    for word in words:
        if word[:1] == "-":
            break
    else:
        return Line(NONE, (), tuple(words))
    flags, values, operands, index = set[str](), list[tuple[str, str]](), list[str](), 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            operands.extend(words[index:])
            break
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if to_operand:
                operands.extend(words[index:])
                break
            continue
        name, attached = _attached(word, takes, flags, long_style)
        if attached is None and _takes(name, takes) and index < len(words):
            attached = words[index]
            index += 1
        if attached is not None:
            values.append((name, attached))
    return Line(frozenset(flags), tuple(values), tuple(operands))


def _attached(word: str, takes: frozenset[str], flags: set[str], long_style: bool) -> tuple[str, str | None]:
    """Add the option names of a word to `flags`; return the last name, and the value in the same word, if any."""
    if word.startswith("--") or long_style:
        name, equals, value = word.partition("=")
        flags.add(name)
        return name, value if equals else None
    for position, letter in enumerate(word[1:], 1):
        name = "-" + letter
        flags.add(name)
        if name in takes and position + 1 < len(word):
            return name, word[position + 1 :]
    return name, None


def _takes(name: str, takes: frozenset[str]) -> bool:
    """Return whether an option takes a value; long ones may be shortened."""
    return name in takes or (name.startswith("--") and len(name) > 4 and any(t.startswith(name) for t in takes))


def has_any(flags: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether one of the wanted options is given; a long one may be shortened to four letters or more."""
    if flags & wanted:
        return True
    return any(len(flag) > 4 and flag.startswith("--") and any(w.startswith(flag) for w in wanted) for flag in flags)
