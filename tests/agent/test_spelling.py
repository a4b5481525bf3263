"""A name that there is not is answered with the one that was meant, or with all."""

import pytest

from agent.spelling import meant


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("gatd", ["default", "gated"], "did you mean 'gated'?"),
        ("nothing", ["default", "gated"], "there are: default, gated"),
        ("gated", {}, "there are: none"),
    ],
)
def test_a_name_that_there_is_not_has_a_cure(name: str, known: list[str], told: str) -> None:
    assert meant(name, known) == told
