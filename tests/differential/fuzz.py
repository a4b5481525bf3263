"""Random texts in which a command may hide: whatever bash runs of them, the judgement must have seen.

`python -m tests.differential.fuzz 20000 [SEED]` tries so many texts, and prints those that are allowed although their
payload runs.
"""

import sys
import tempfile
from pathlib import Path
from random import Random

from constitution import Level, judge_command
from tests.differential.recorder import run

__all__ = ["allowed_although_it_runs", "texts"]

PAYLOAD = "rm -rf ~"
RUN = ("rm", "-rf", "/home/me")
PARTS = (
    *(
        "'",
        '"',
        "\\",
        "\n",
        "\\\n",
        " ",
        "#",
        " # ",
        ";",
        "; ",
        "|",
        " && ",
        "||",
        "&",
        "(",
        ")",
        "{ ",
        " }",
        "`",
        "$(",
    ),
    *("${x:-", "${x#", "${x/", "${x:+", "}", "$((", "))", "((", "$'", '$"', "<<E\n", "<<'E'\n", "<<-E\n", "<<\\E\n"),
    *(
        "\nE\n",
        "\n\tE\n",
        "<<E <<F\n",
        "\nF\n",
        " | cat <<F\n",
        "<<<",
        "[ ",
        " ]",
        "[\n",
        "[[ ",
        " ]]",
        "case x in ",
        "a) ",
    ),
    *(
        ";; ",
        " esac",
        "if ",
        " then ",
        " fi",
        "for i in a; do ",
        " done",
        "ls",
        "x=1 ",
        "a",
        "1",
        "echo ",
        "cat ",
        ": ",
        "$x",
    ),
    *(
        "\t",
        "! ",
        "time ",
        "f() ",
        "a=(",
        "<(",
        ">(",
        "\\'",
        '\\"',
        "\\`",
        "\\$",
        "=",
        "-",
        "*",
        "x",
        " E",
        "E",
        "eval ",
    ),
)


def texts(many: int, seed: int) -> list[str]:
    """Return texts with the payload somewhere among parts of shell."""
    random = Random(seed)
    return [_text(random) for _ in range(many)]


def _text(random: Random) -> str:
    before = random.choices(PARTS, k=random.randint(1, 7))
    behind = random.choices(PARTS, k=random.randint(0, 5))
    return "".join([*before, PAYLOAD, *behind])


def allowed_although_it_runs(tried: list[str]) -> list[str]:
    """Return the texts that are allowed, and in which bash runs the payload."""
    allowed = [text for text in tried if judge_command(text, "/ws", home="/home/me").level is Level.allow]
    with tempfile.TemporaryDirectory() as folder:
        return [text for text in allowed if RUN in run(text, Path(folder))]


def main(many: int, seed: int) -> None:
    """Try texts and print what is found."""
    tried = texts(many, seed)
    found = allowed_although_it_runs(tried)
    for text in found:
        print(repr(text))
    print(f"{len(found)} of {len(tried)} are allowed although their payload runs")


if __name__ == "__main__":
    many, seed = [*sys.argv[1:], *["1000", "1"][len(sys.argv) - 1 :]]
    main(int(many), int(seed))
