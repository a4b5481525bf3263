"""Nothing in the tables is idle: whatever is taken away or changed, an example fails. `make mutation` counts."""

from functools import cache
from itertools import islice

import pytest

from tests.constitution.mutation import Mutant, all_mutants, is_noticed

pytestmark = pytest.mark.timeout(300)  # it judges every example several times

MANY = frozenset(["row", "effect taken away", "effect changed", "level changed"])
HARDLY_ANY = 0.01


@cache
def unnoticed() -> tuple[Mutant, ...]:
    return tuple(mutant for mutant in all_mutants() if not is_noticed(mutant))


@pytest.mark.slow
def test_of_every_sixtieth_change_hardly_one_goes_unnoticed() -> None:
    idle = [mutant.name for mutant in islice(all_mutants(), 0, None, 60) if not is_noticed(mutant)]

    assert len(idle) <= 3, idle


@pytest.mark.slow
def test_a_row_that_is_taken_away_is_noticed() -> None:
    """Some example fails without it, and without or with another of its effects; and at any other level of a rule."""
    idle = [mutant.name for mutant in unnoticed() if mutant.kind in MANY]

    assert idle == []


@pytest.mark.slow
def test_hardly_an_option_a_condition_or_a_zone_can_go_unnoticed() -> None:
    """Which options have a value, which take an effect away, which flags and zones a row has: examples show it."""
    idle = [f"{mutant.kind}: {mutant.name}" for mutant in unnoticed() if mutant.kind not in MANY]
    tried = sum(mutant.kind not in MANY for mutant in all_mutants())

    assert tried > 1000
    assert len(idle) <= HARDLY_ANY * tried, idle
