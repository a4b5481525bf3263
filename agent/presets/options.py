"""Options by name, as text or as values: each has to fit the type of its field, and the message says what would."""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar, get_origin

from attrs import evolve, fields_dict

from agent.presets.types import alternatives
from agent.vocabulary.errors import AgentError
from agent.vocabulary.spelling import meant

__all__ = ["OptionError", "option_type", "with_options", "with_value"]

Bundle = TypeVar("Bundle")


class OptionError(AgentError):
    """A preset or an option does not exist, or has a value that it cannot have; the message says what would do."""


def with_options(bundle: Bundle, options: Mapping[str, str]) -> Bundle:
    """Return `bundle`, whose fields are options except for its name, with some given as text. Raises OptionError."""
    for name, text in options.items():
        hint = option_type(bundle, name)
        try:
            bundle = with_value(bundle, name, _parsed(text, hint))
        except ValueError as error:
            raise OptionError(f"option {name}={text!r}: {error}") from error
    return bundle


def with_value(bundle: Bundle, name: str, value: object) -> Bundle:
    """Return `bundle` with one option set. Raises ValueError for a value that it cannot have."""
    try:
        changed: Any = bundle
        return evolve(changed, **{name: value})  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        raise ValueError(_first_line(error)) from error


def option_type(bundle: Any, name: str) -> Any:
    """Return the type of an option. Raises OptionError for an unknown name, naming the nearest."""
    known = {option: attribute for option, attribute in fields_dict(type(bundle)).items() if option != "name"}
    if name not in known:
        raise OptionError(f"there is no option {name!r}; {meant(name, known)}")
    return known[name].type


def _parsed(text: str, hint: Any) -> Any:
    """Read an option's text by its type; "none" is no limit, or nothing in a list, as the table of presets shows it."""
    kinds = alternatives(hint)
    is_list, is_none = any(get_origin(kind) is tuple for kind in kinds), text.lower() == "none"
    if NoneType in kinds and is_none:
        return None
    if is_list:
        return () if is_none else tuple(part for part in text.split(",") if part)
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
