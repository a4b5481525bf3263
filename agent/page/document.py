"""HTML documents: trees of elements with a strict content security policy, one style sheet and at most one script."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Element = ElementTree.Element
Child = Element | str | None

KEPT = "\n\t"
CONTROL = re.compile(r"\\\\|\\[bfr]|\\u00([01][0-9a-f])")
SHORT = {"\\b": r"\\x08", "\\f": r"\\x0c", "\\r": ""}


def element(tag: str, *children: Child, **attributes: str | None) -> Element:
    """Return an element with its children in order; attributes that are None are left out.

    A trailing `_` of an attribute's name is dropped, and `_` within is `-`: `class_`, `http_equiv`.
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    made = ElementTree.Element(tag, {name: printable(value) for name, value in named.items() if value is not None})
    last: Element | None = None
    for child in children:
        if isinstance(child, str) and last is None:
            made.text = (made.text or "") + printable(child)
        elif isinstance(child, str) and last is not None:
            last.tail = (last.tail or "") + printable(child)
        elif isinstance(child, Element):
            made.append(child)
            last = child
    return made


def printable(text: str) -> str:
    """Return `text` with invisible characters escaped; lines and tabs stay."""
    return "".join(char if char.isprintable() or char in KEPT else _escape(char) for char in text)


def _escape(char: str) -> str:
    return "" if char == "\r" else char.encode("unicode_escape").decode("ascii")


@cache
def shipped(name: str) -> str:
    """Return a file of this package: a style sheet or a script."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def document(
    title: str, *body: Child, data: Mapping[str, Any] | None = None, script: str = "", connects: bool = False
) -> str:
    """Return a page that loads no other resources; it is valid UTF-8 for any content.

    script: the one of this package that the page runs; empty: none, or `page.js` where there is data, which that draws.
    connects: the script may ask the page's own server.
    """
    script = script or ("" if data is None else "page.js")
    drawn = None if data is None else _raw("script", as_data(data), type="application/json", id="data")
    runs = _raw("script", shipped(script)) if script else None
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script, connects)),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        _raw("style", shipped("page.css")),
    )
    root = element("html", head, element("body", *body, drawn, runs), lang="en")
    return "<!DOCTYPE html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def _policy(script: str, connects: bool) -> str:
    """Return the content security policy: this one style sheet, this one script, and images that are in the page."""
    allowed = ["default-src 'none'", f"style-src '{_hash('page.css')}'", "img-src data:", "base-uri 'none'"]
    allowed += ["form-action 'none'", f"script-src '{_hash(script)}'" if script else "script-src 'none'"]
    return "; ".join([*allowed, *(["connect-src 'self'"] if connects else [])])


@cache
def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(shipped(name).encode()).digest()).decode()


def _raw(tag: str, text: str, **attributes: str) -> Element:
    made = element(tag, **attributes)
    made.text = text
    return made


def as_data(data: Mapping[str, Any]) -> str:
    """Return data as JSON that ends no element, with invisible characters as escapes that are shown."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = CONTROL.sub(lambda found: rf"\\x{found[1]}" if found[1] else SHORT.get(found[0], found[0]), text)
    odd: dict[str, str | int | None] = {char: f"\\{_escape(char)}" for char in set(text) if not char.isprintable()}
    return text.translate(str.maketrans(odd)).replace("<", "\\u003c")
