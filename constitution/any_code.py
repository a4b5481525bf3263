"""Code in a language that nobody here knows: by the texts in quotes, which are commands or files often enough."""

import re

from constitution.interpreters import Reading
from constitution.tables import is_a

__all__ = ["read_any"]

TEXT = r"\"((?:[^\"\\\n]|\\.){1,400})\"|'((?:[^'\\\n]|\\.){1,400})'"
GROUP = re.compile(r"[\s,()\[\]:]*")
MACROS = re.compile(r"\b(?:(?:syscmd|esyscmd)\(`?([^')]*)|write18\s*\{([^}]*)\})")
PRINTS = re.compile(
    r"(?:print\w*|echo|puts|disp|display|write\w*|format|message|log|inspect|printf|cat)[\s(\"'.]{0,4}$", re.I
)
DELETES = re.compile(r"(?i)\b(?:delete|remove|unlink|rmdir|rm|trash|destroy|erase)\w*|delete-tree")


def read_any(code: str) -> Reading:
    """Read code: texts that begin like a command are commands; paths beside words of deletion are deleted."""
    reading = Reading()
    if len(code) > 20_000:
        reading.risks.append("run inline code that is too long to read")
        return reading
    reading.scripts += [text for found in MACROS.findall(code) for text in found if text]
    deletes = DELETES.search(code) is not None
    for words, before in _groups(code):
        if words[0].split()[:1] and is_a(words[0].split()[0].rpartition("/")[2], "quoted_command"):
            if not PRINTS.search(before):
                reading.scripts.append(words[0] if len(words) == 1 else " ".join(map(_quoted, words)))
        elif deletes:
            reading.paths += [("delete_tree", word) for word in words if re.match(r"[/~]\S*$", word)]
    return reading


def _groups(code: str) -> list[tuple[list[str], str]]:
    """Return texts in quotes that follow each other, as the words of one list, and what stands before them."""
    groups, end = list[tuple[list[str], str]](), -1
    for match in re.finditer(TEXT, code):
        text = next(part for part in match.groups() if part is not None)
        if groups and GROUP.fullmatch(code, end, match.start()) is not None:
            groups[-1][0].append(text)
        else:
            groups.append(([text], code[max(0, match.start() - 24) : match.start()]))
        end = match.end()
    return groups


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
