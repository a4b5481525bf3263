"""An unknown name is answered with the one that was meant, or with all."""

import pytest

from agent.vocabulary.errors import meant, nearest


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("gatd", ["default", "gated"], "did you mean 'gated'?"),
        ("nothing", ["default", "gated"], "there are: default, gated"),
        ("Gated", ["default", "gated"], "did you mean 'gated'?"),
        ("gated", {}, "there are: none"),
    ],
)
def test_an_unknown_name_has_a_cure(name: str, known: list[str], told: str) -> None:
    assert meant(name, known) == told


def test_the_nearest_names_come_first() -> None:
    names = ("bash", "read_file", "write_file", "list_directory")

    assert nearest("bsh", names) == ("bash",)
    assert nearest("Read_File", names)[0] == "read_file"
    assert nearest("frobnicate", names) == ()
