"""A short form of the mutation of the tables: no row is idle, and no effect is. `make mutation` tries every option."""

from tests.constitution.mutation import all_mutants, is_noticed

MANY = frozenset(["row", "effect taken away", "level changed"])


def test_a_row_that_is_taken_away_is_noticed() -> None:
    """Some example fails without it, and without each of its effects; and at any other level of a rule."""
    idle = [mutant.name for mutant in all_mutants() if mutant.kind in MANY and not is_noticed(mutant)]

    assert idle == []
