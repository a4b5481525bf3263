"""Nothing in the tables is idle: whatever is taken away or changed, an example fails. `make mutation` counts."""

import pytest

from tests.constitution.mutation import all_mutants, is_noticed

MANY = frozenset(["row", "effect taken away", "effect changed", "level changed"])
HARDLY_ANY = 0.01


@pytest.mark.slow
@pytest.mark.timeout(300)  # every example is judged several times
def test_a_part_of_the_tables_that_is_taken_away_or_changed_is_noticed() -> None:
    """Some example fails without a row, without or with another of its effects, and at any other level of a rule.

    Of options, conditions, flags and zones, hardly one can go without an example that fails.
    """
    mutants = list(all_mutants())
    idle = [mutant for mutant in mutants if not is_noticed(mutant)]
    finer = [f"{mutant.kind}: {mutant.name}" for mutant in idle if mutant.kind not in MANY]
    tried = sum(mutant.kind not in MANY for mutant in mutants)

    assert [mutant.name for mutant in idle if mutant.kind in MANY] == []
    assert tried > 1000
    assert len(finer) <= HARDLY_ANY * tried, finer
