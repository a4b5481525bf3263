"""Options given as text: each is read by the type of its field, and what does not fit says what would."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from attrs import AttrsInstance, evolve, fields_dict

from agent.errors import AgentError

__all__ = ["OptionError", "nearest", "with_options"]

Bundle = TypeVar("Bundle", bound=AttrsInstance)


class OptionError(AgentError):
    """A preset or an option does not exist, or has a value that it cannot have; the message says what would do."""


def with_options(bundle: Bundle, options: Mapping[str, str]) -> Bundle:
    """Return `bundle`, whose fields are options except for its name, with some given as text. Raises OptionError."""
    for name, text in options.items():
        bundle = _with_option(bundle, name, text)
    return bundle


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what to say about the one of `names` that `name` resembles, if there is one."""
    close = get_close_matches(name, list(names), n=1)
    return f"; the nearest is {close[0]!r}" if close else ""


def _with_option(bundle: Any, name: str, text: str) -> Any:
    known = {option: attribute for option, attribute in fields_dict(type(bundle)).items() if option != "name"}
    if name not in known:
        raise OptionError(f"there is no option {name!r}{nearest(name, known)}; options: {', '.join(known)}")
    try:
        return evolve(bundle, **{name: _parsed(text, known[name].type)})
    except (ValueError, TypeError) as error:
        raise OptionError(f"option {name}={text!r}: {_first_line(error)}") from error


def _parsed(text: str, hint: Any) -> Any:
    """Read an option's text by its type; "none" is no limit."""
    kinds = get_args(hint) or (hint,)
    if NoneType in kinds and text.lower() == "none":
        return None
    if get_origin(hint) is tuple:
        return tuple(part for part in text.split(",") if part)
    reader = next((READERS[kind] for kind in kinds if kind in READERS), None)
    if reader is None:
        return text
    read, wanted = reader
    try:
        return read(text)
    except (ValueError, KeyError) as error:
        raise ValueError(f"give {wanted}") from error


READERS: dict[Any, tuple[Callable[[str], object], str]] = {
    bool: (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
}
"""How the text of an option is read, by its type, and what to ask for where that fails. Others stay text."""


def _first_line(error: Exception) -> str:
    return str(error.args[0]).splitlines()[0] if error.args else type(error).__name__
