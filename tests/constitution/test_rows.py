"""The rows of the tables carry examples; `rows.tsv` and `options.tsv` have more of them; here they are judged."""

import pytest

from tests.constitution.examples import Example, of_options, of_rows, of_zones, written_down


@pytest.mark.parametrize("example", of_rows(), ids=str)
def test_a_row_says_what_its_examples_show(example: Example) -> None:
    assert example.holds()


@pytest.mark.parametrize("example", written_down(), ids=str)
def test_the_tables_say_what_is_written_down(example: Example) -> None:
    assert example.holds()


@pytest.mark.parametrize("line", of_options(), ids=lambda line: str(line[0]))
def test_an_option_is_read_as_the_program_reads_it(line: tuple[Example, ...]) -> None:
    assert [example for example in line if not example.holds()] == []


@pytest.mark.parametrize("line", of_zones(), ids=lambda line: line[0].said)
def test_a_rule_speaks_in_every_place_that_it_names(line: tuple[Example, ...]) -> None:
    assert [example for example in line if not example.holds()] == []
