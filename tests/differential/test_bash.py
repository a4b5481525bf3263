"""A second, independent reading: what bash really runs is among what we say that it runs, word for word."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constitution import Action, commands_of, effects_of
from constitution.places import FOUND
from tests.constitution.corpora import commands
from tests.differential.fuzz import allowed_although_it_runs, texts
from tests.differential.recorder import Ran, run
from tests.tables import rows

FORMS = (Path(__file__).parent / "forms.txt").read_text(encoding="utf-8").replace("⏎", "\n\0").split("\n")
SCRIPTS = "\n".join(FORMS).replace("\n\0", "\x01").split("\n")
DESCRIPTOR = re.compile(r"/dev/fd/\d+")
UNKNOWN = re.compile(r"(…|\?\*)")
DOUBTS = ("unreadable", "unknown_command", "unknown_code", "fetched_code")
UNLIKE = re.compile(r"<\(.*<\(|\$\((pwd|cat)\b|\b(while|until|wait|trap|alias|coproc)\b|/dev/tcp|&\s*$|& |\$(!|USER)")
EVERYDAY = [
    command
    for command in commands("harmless")
    if not re.search(
        r"<\(.*<\(|\$\((pwd|cat)\b|\b(while|until|wait|trap|alias|coproc)\b|/dev/tcp|&\s*$|& |\$(!|USER)", command
    )
]
"""Nothing in it would do harm if it ran; and nothing in it runs."""


def found(script: str, folder: Path) -> tuple[Ran, bool]:
    """What we say that a script runs, as argv; a word may hold a part that cannot be known. And whether we doubt it."""
    action = Action("bash", "write", str(folder), home="/home/me", command=script)
    doubtful = any(effect.kind in DOUBTS for effect in effects_of(action))
    return [evidence.argv for evidence in commands_of(action)], doubtful


def foresees(said: tuple[str, ...], ran: tuple[str, ...]) -> bool:
    """Whether a described argv stands for one that ran. What cannot be known may be any text, also none or several."""
    words = [
        "".join(".*" if part in ("…", FOUND) else re.escape(part) for part in UNKNOWN.split(word)) for word in said
    ]
    pattern = "".join(f"(?:{word}\x1f)?" if ".*" in word else f"{word}\x1f" for word in words)
    text = "".join(f"{word}\x1f" for word in ran)
    return re.fullmatch(DESCRIPTOR.sub("/dev/fd/0", pattern), DESCRIPTOR.sub("/dev/fd/0", text), re.S) is not None


def overlooked(script: str, folder: Path) -> Ran:
    """What bash ran although we did not say so, and had no doubt."""
    said, doubtful = found(script, folder)
    if doubtful:
        return []
    return [ran for ran in run(script, folder) if not any(foresees(argv, ran) for argv in said)]


@pytest.mark.slow
@rows("script", [form.replace("\x01", "\n") for form in SCRIPTS if form])
def test_the_programs_that_bash_runs_are_among_those_that_are_found(script: str, tmp_path: Path) -> None:
    assert overlooked(script, tmp_path) == []


def test_few_everyday_forms_are_doubtful(tmp_path: Path) -> None:
    """A doubt is a way out, which must not be taken often."""
    scripts = [form.replace("\x01", "\n") for form in SCRIPTS if form]

    doubtful = [script for script in scripts if found(script, tmp_path)[1]]

    assert len(doubtful) <= 4, doubtful


def test_the_recorder_sees_what_bash_runs(tmp_path: Path) -> None:
    """The recorder works: it would be no use if bash ran nothing."""
    assert run("alpha 'a b'; sh -c x | \\beta", tmp_path) in (
        [("alpha", "a b"), ("sh", "-c", "x"), ("beta",)],
        [("alpha", "a b"), ("beta",), ("sh", "-c", "x")],
    )


@pytest.mark.slow
@rows("start", range(0, len(EVERYDAY), 40))
def test_everyday_commands_are_read_as_bash_reads_them(start: int, tmp_path: Path) -> None:
    wrong = {command: missed for command in EVERYDAY[start : start + 40] if (missed := overlooked(command, tmp_path))}

    assert wrong == {}


@rows(
    "script", ["/bin/echo x > made", "exec 8> made", "cd /; alpha", "kill -0 $$", "builtin kill -0 $$", "PATH=/bin; ls"]
)
def test_the_recorder_lets_nothing_out(script: str, tmp_path: Path) -> None:
    ran = run(f"{script}\nbeta", tmp_path)

    assert not any(tmp_path.iterdir())
    assert all(argv[0] in ("kill", "alpha", "beta", "cd", "exec", "ls") for argv in ran)


CHARACTERS = st.text(st.sampled_from([*"ab1 \t*?[]{},~$`'\"\\#!&|;<>()=-/.é", "\n"]), min_size=1, max_size=6)
PLAIN = st.text(st.sampled_from("abc123_/.-"), min_size=1, max_size=5)


def _double(text: str) -> str:
    return '"' + re.sub(r'([$`"\\])', r"\\\1", text) + '"'


def _ansi(text: str) -> str:
    return "$'" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + "'" if text.isascii() else shlex.quote(text)


def _backslashes(text: str) -> str:
    return "".join("'\n'" if c == "\n" else f"\\{c}" for c in text)


QUOTED = st.one_of(
    CHARACTERS.map(shlex.quote),
    CHARACTERS.map(_double),
    CHARACTERS.map(_ansi),
    CHARACTERS.map(_backslashes),
    PLAIN,
    PLAIN.map(lambda text: f"$(echo {text})"),
    PLAIN.map(lambda text: f"`printf %s {text}`"),
    PLAIN.map(lambda text: f"${{none:-{text}}}"),
    st.sampled_from(["${v}", '"$v"', "${w}", '"$w"', "{a,b}", "x{1..3}", "${IFS}", "${HOME}", "${v%c}", "${w##* }"]),
)
WORDS = st.lists(st.lists(QUOTED, min_size=1, max_size=3).map("".join), min_size=1, max_size=4)
JOINED = st.sampled_from([" ", "  ", "\t", " \\\n"])


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(lines=st.lists(st.tuples(WORDS, JOINED), min_size=4, max_size=12))
def test_quoted_words_are_read_as_bash_reads_them(tmp_path: Path, lines: list[tuple[list[str], str]]) -> None:
    script = "v=abc w='d e'\n" + "\n".join(f"p{i}{blank}{blank.join(words)}" for i, (words, blank) in enumerate(lines))

    assert overlooked(script, tmp_path) == []


# A command that hides among random parts of shell is not allowed where bash would run it.


@pytest.mark.slow
def test_no_text_is_allowed_whose_payload_runs() -> None:
    assert allowed_although_it_runs(texts(2000, seed=1)) == []


@pytest.mark.slow
def test_the_payload_of_an_allowed_text_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a harmless payload everything is allowed, and that it runs is found out."""
    monkeypatch.setattr("tests.differential.fuzz.RUN", ("ls", "-rf"))

    assert allowed_although_it_runs(["ls -rf", "echo 'ls -rf'"]) == ["ls -rf"]
