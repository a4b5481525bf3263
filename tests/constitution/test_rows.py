"""The rows of the tables carry examples, and `rows.tsv` has more of them; here they are judged."""

import pytest

from tests.constitution.examples import Example, of_rows, written_down


@pytest.mark.parametrize("example", of_rows(), ids=str)
def test_a_row_says_what_its_examples_show(example: Example) -> None:
    assert example.holds()


@pytest.mark.parametrize("example", written_down(), ids=str)
def test_the_tables_say_what_is_written_down(example: Example) -> None:
    assert example.holds()
