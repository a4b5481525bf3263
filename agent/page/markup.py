"""HTML as a tree of elements: text is text, whatever stands in it, and nothing can break out of its element."""

from collections.abc import Mapping
from xml.etree import ElementTree

__all__ = ["Element", "as_html", "element", "printable"]

Element = ElementTree.Element
Child = Element | str | Mapping[str, str] | None

KEPT = "\n\t"


def element(tag: str, *children: Child, **attributes: str | None) -> Element:
    """Return an element with its children in order; attributes that are None are left out.

    `class_` is the attribute class; a mapping among the children holds attributes whose names are no identifiers.
    """
    made = ElementTree.Element(tag, _named(attributes))
    last: Element | None = None
    for child in children:
        if isinstance(child, str):
            _append_text(made, last, printable(child))
        elif isinstance(child, Mapping):
            made.attrib |= _named(child)
        elif child is not None:
            made.append(child)
            last = child
    return made


def as_html(root: Element) -> str:
    """Return a document; it is valid UTF-8 whatever was put in."""
    return "<!DOCTYPE html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def printable(text: str) -> str:
    """Return `text` with what cannot be seen written as an escape; lines and tabs stay."""
    return "".join(char if char.isprintable() or char in KEPT else _escape(char) for char in text)


def _escape(char: str) -> str:
    return "" if char == "\r" else char.encode("unicode_escape").decode("ascii")


def _named(attributes: Mapping[str, str | None]) -> dict[str, str]:
    return {name.rstrip("_"): printable(value) for name, value in attributes.items() if value is not None}


def _append_text(made: Element, last: Element | None, text: str) -> None:
    if last is None:
        made.text = (made.text or "") + text
    else:
        last.tail = (last.tail or "") + text
