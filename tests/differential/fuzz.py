"""Random texts in which a command may hide: whatever bash runs of them, the judgement must have seen.

`python -m tests.differential.fuzz 20000 [SEED]` tries so many texts, and prints those that are allowed although their
payload runs.
"""

import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random

from constitution import Level, judge_command
from tests.differential.recorder import run

__all__ = ["allowed_although_it_runs", "texts"]

PAYLOAD = "rm -rf ~"
RUN = ("rm", "-rf", "/home/me")
SPELLED = str.maketrans("⏎⇥␍␋⍽", "\n\t\r\v\xa0")
PLACE = re.compile("[§¶]")


@cache
def grammar(section: str) -> tuple[str, ...]:
    """Return the pieces of a section of `grammar.txt`: "parts", "forms" or "words"."""
    text = (Path(__file__).parent / "grammar.txt").read_text(encoding="utf-8")
    wanted = next(part for part in text.split("\n== ") if part.startswith(section))
    return tuple(piece.translate(SPELLED) for line in wanted.splitlines()[1:] if line for piece in line.split("¦"))


def texts(many: int, seed: int) -> list[str]:
    """Return texts with the payload among parts of shell: by turns at random, and in forms that bash knows."""
    random = Random(seed)
    return [_nested(random) if number % 2 else _text(random) for number in range(many)]


def _text(random: Random) -> str:
    before = random.choices(grammar("parts"), k=random.randint(1, 7))
    behind = random.choices(grammar("parts"), k=random.randint(0, 5))
    return "".join([*before, PAYLOAD, *behind])


def _nested(random: Random) -> str:
    """Return a form with forms in its places, the payload in some of them, and now and then a part too many."""
    text = random.choice(grammar("forms"))
    for _ in range(random.randint(0, 5)):
        text = PLACE.sub(lambda place: random.choice(grammar("forms" if place[0] == "§" else "words")), text, count=1)
    text = PLACE.sub(lambda place: _end(place[0], random), text)
    if random.random() < 0.3:
        at = random.randint(0, len(text))
        text = text[:at] + random.choice(grammar("parts")) + text[at:]
    return text


def _end(place: str, random: Random) -> str:
    if place == "¶":
        return random.choice(("a", "x", "1", "$x", PAYLOAD, f"$({PAYLOAD})", "'", '"'))
    return random.choice((PAYLOAD, PAYLOAD, "ls", "x", "true"))


def allowed_although_it_runs(tried: list[str]) -> list[str]:
    """Return the texts that are allowed, and in which bash runs the payload."""
    allowed = [text for text in tried if judge_command(text, "/ws", home="/home/me").level is Level.allow]
    with tempfile.TemporaryDirectory() as folder:
        return [text for text in allowed if any(ran[: len(RUN)] == RUN for ran in run(text, Path(folder)))]


def main(many: int, seed: int) -> None:
    """Try texts and print what is found."""
    tried, found = texts(many, seed), list[str]()
    for start in range(0, many, 1000):
        more = allowed_although_it_runs(tried[start : start + 1000])
        print(*map(repr, more), sep="\n", end="\n" if more else "", flush=True)
        found += more
    print(f"{len(found)} of {len(tried)} are allowed although their payload runs")


if __name__ == "__main__":
    many, seed = [*sys.argv[1:], *["1000", "1"][len(sys.argv) - 1 :]]
    main(int(many), int(seed))
