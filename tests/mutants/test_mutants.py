"""What `make mutants` finds in a small project, whose tests notice some mutants and leave others."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutants import trials
from tests.mutants.__main__ import main
from tests.mutants.operators import mutants_of
from tests.tables import rows

RULES = """
def is_grown_up(age):
    return age >= 18


def is_child(age):
    return age < 13


def never_called():
    return 1 + 1


def doubled(number):
    return number + number


def is_refused():
    return True


def counted(limit):
    number = 0
    while number < limit:
        number += 1
    return number
"""

TESTS = """
import subprocess
import sys

from room.rules import counted, is_child, is_grown_up, is_refused


def test_people_of_18_are_grown_up_and_those_of_17_are_not():
    assert is_grown_up(18) and not is_grown_up(17)


def test_a_baby_is_a_child():
    assert is_child(1)


def test_a_program_with_an_empty_environment_doubles():
    command = [sys.executable, "-c", "from room.rules import doubled; print(doubled(2))"]
    assert subprocess.run(command, env={}, cwd="/", capture_output=True, check=True).stdout == b"4\\n"


def test_nothing_is_written():
    if not is_refused():
        open("{project}/HARMED", "w").close()


def test_it_counts():
    assert counted(3) == 3 and counted(0) == 0
"""

SETTINGS = """
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = ["."]
markers = ["slow"]
"""

SURVIVE = [
    "room/rules.py:7: is_child: age <= 13, not age < 13  [survives]",
    "room/rules.py:7: is_child: 14 for 13  [survives]",
    "room/rules.py:19: is_refused: False for True  [survives]",
]
NOT_EXECUTED = [
    "room/rules.py:11: never_called: return None, not 1 + 1  [is executed by no test]",
    "room/rules.py:11: never_called: turn the sign in 1 + 1  [is executed by no test]",
    "room/rules.py:11: never_called: 2 for 1  [is executed by no test]",
    "room/rules.py:11: never_called: 2 for 1 (2)  [is executed by no test]",
]
BABY = "tests/room/test_rules.py::test_a_baby_is_a_child"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]) -> Path:
    """A checkout with one room, in which mutants are tried."""
    needs("bwrap")
    files = {
        "room/rules.py": RULES,
        "tests/room/test_rules.py": TESTS.replace("{project}", str(tmp_path)),
        "pyproject.toml": SETTINGS,
    }
    for name, text in {**files, ".gitignore": "build/\n__pycache__/\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "Begin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trials, "PATIENCE", 1.0)  # a mutant that never ends is noticed soon
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_the_mutants_that_no_test_notices_are_listed_and_a_run_goes_on_where_it_was_interrupted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["room", "--jobs", "2"]) == 0

    *listed, last = capsys.readouterr().out.splitlines()
    assert listed == NOT_EXECUTED + SURVIVE
    assert "3 survive, 4 are executed by no test" in last
    assert "; 0 of them by a timeout" not in last  # what never ends is noticed, too
    assert git(project, "status", "--porcelain") == ""  # the working tree is only read
    assert not (project / "HARMED").exists()  # what a changed rule has let happen, happened in the copy only

    [results] = project.glob("build/mutants/*/results.jsonl")
    kept = results.read_text().splitlines(keepends=True)
    results.write_text("".join(kept[:-3]))
    assert main(["room", "--without", BABY]) == 0
    *again, without = capsys.readouterr().out.splitlines()
    assert again[:8] == [*listed, last]
    assert sorted(results.read_text().splitlines(keepends=True)[: len(kept)]) == sorted(kept)
    assert again[8:] == [f"room/rules.py:7: is_child: return None, not age < 13  [survives without {BABY}]"]
    assert without.endswith("without it 1 of them survive")


@pytest.mark.slow
def test_only_what_changed_is_judged_and_what_is_listed_as_equivalent_is_left_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "room/rules.py").write_text(RULES.replace("13", "12"))
    listed = project / "tests/mutants/equivalents.toml"
    listed.parent.mkdir()
    entry = '[[equivalent]]\nfile = "room/rules.py"\nfunction = "is_child"\nchange = "{}"\nreason = "nobody is 12"\n'
    listed.write_text(entry.format("age <= 12, not age < 12"))

    assert main(["--base", "HEAD"]) == 0
    *survive, last = capsys.readouterr().out.splitlines()
    assert survive == ["room/rules.py:7: is_child: 13 for 12  [survives]"]
    assert last.startswith("room: 2 mutants, 1 noticed")
    assert last.endswith("1 more are listed as equivalent")

    listed.write_text(entry.format("age <= 13, not age < 13"))
    assert main(["--base", "HEAD"]) == 2
    assert "no mutant is 'age <= 13, not age < 13' in 'is_child'" in capsys.readouterr().err


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_judge_none(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests/room/test_rules.py").write_text(TESTS.replace("is_child(1)", "is_child(40)"))

    assert main(["room"]) == 2
    assert f"fail, so mend them first:\n  {BABY}\n" in capsys.readouterr().err


@rows(
    "source, changes",
    [
        (
            "yield sync(request=A(), otherwise=f, refuse=B, because='x', hot=True)",
            [
                "drop yield sync(request=A(), otherwise=f, refuse=B, because='x', hot=True)",
                "drop otherwise=f",
                "drop hot=True",
                "False for True",
            ],
        ),
        (
            "yield sync(wait_for=A | B, block=C)",
            [
                "drop yield sync(wait_for=A | B, block=C)",
                "drop wait_for=A | B",
                "drop B of A | B",
                "drop A of A | B",
                "drop block=C",
            ],
        ),
        (
            "return where((A, B), is_big, call=1)",
            [
                "return None, not where((A, B), is_big, call=1)",
                "drop is_big",
                "drop A",
                "drop B",
                "drop call=1",
                "2 for 1",
            ],
        ),
        (
            "if not done and n > 1:\n    raise E",
            [
                "drop if not done and n > 1:",
                "negate not done and n > 1",
                "or in not done and n > 1",
                "drop not done of not done and n > 1",
                "drop n > 1 of not done and n > 1",
                "done, not not done",
                "n >= 1, not n > 1",
                "2 for 1",
                "drop raise E",
            ],
        ),
        ("n = 0\nn = x", ["forget n = 0", "1 for 0", "forget n = x"]),
        ("m: int = len('a')\n'text'\nraise E(f'{m + 1}') from None", ["drop raise E(f'{m + 1}') from None"]),
    ],
)
def test_each_change_is_one_slip_of_a_programmer(source: str, changes: list[str]) -> None:
    function = "def f(done, x):\n" + "".join(f"    {line}\n" for line in source.splitlines())
    mutants = list(mutants_of(function, "f.py", "f.py"))

    assert [mutant.change for mutant in mutants] == changes
    assert all(mutant.compiled() for mutant in mutants)


def test_an_imported_kind_is_swapped_for_the_one_beside_it_and_what_is_made_at_import_reaches_every_test() -> None:
    source = dedent("""
        from events import Asked, Told, Heard
        NEWS = Heard
        def f(event: Told) -> bool:
            return isinstance(event, Told)
    """)
    found = {mutant.change: mutant.reaches_every_test for mutant in mutants_of(source, "f.py", "f.py")}

    assert found == {
        "Asked for Heard": True,
        "return None, not isinstance(event, Told)": False,
        "Heard for Told": False,
    }
