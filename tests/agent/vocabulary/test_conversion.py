"""JSON becomes values of our own, strictly: the two ways of looking at it agree, and mistakes have a place."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from attrs import asdict, frozen
from hypothesis import given
from hypothesis import strategies as st

from agent.vocabulary.conversion import parsed, structured


@frozen
class Leaf:
    color: Literal["red", "green"]
    size: float | None = None


@frozen
class Tree:
    name: str
    leaves: tuple[Leaf, ...] = ()
    words: tuple[str, ...] = ()
    weights: Mapping[str, float] = {}


TREE = Tree("elm", (Leaf("red", 2), Leaf("green")), ("a", "b"), {"a": 0.5})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["red", "x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["color", "size", "a"]), inner),
    max_leaves=4,
)


def test_plain_data_become_the_value_that_they_were_made_of() -> None:
    assert structured(asdict(TREE), Tree, "tree") == TREE
    assert parsed('{"name": "elm"}', Tree, "tree") == Tree("elm")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "expected an object, found [] @ tree"),
        ("{}", "nothing is there @ tree.name"),
        ('{"name": 3}', "expected str, found 3 @ tree.name"),
        ('{"name": "", "words": "ab"}', "expected a list, found 'ab' @ tree.words"),
        ('{"name": "", "words": ["a", 3]}', "expected str, found 3 @ tree.words[1]"),
        ('{"name": "", "leaves": [{"color": "blue"}]}', "of 'red', 'green', found 'blue' @ tree.leaves[0].color"),
        ('{"name": "", "leaves": [{"color": ["red"]}]}', "found ['red'] @ tree.leaves[0].color"),
        ('{"name": "", "leaves": [{"color": "red", "size": true}]}', "float, found True @ tree.leaves[0].size"),
        ('{"name": "", "weights": []}', "expected an object @ tree.weights"),
        ('{"name": "", "weights": {"a": "1"}}', "expected float, found '1' @ tree.weights['a']"),
        ('{"name": "", "roots": 3}', "'roots' is not known here @ tree"),
        ('{"name": "", "words": [["' + "x" * 100 + '"]]}', "xxx… @ tree.words[0]"),
        ("{", "line 1 column 2"),
        ("[" * 100_000, "values are nested too deeply @ tree"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        parsed(text, Tree, "tree")

    assert told in str(caught.value)


@given(st.dictionaries(st.sampled_from(["name", "leaves", "words", "weights"]), VALUES))
def test_whatever_is_accepted_says_what_it_was_made_of(told: dict[str, Any]) -> None:
    """Of what is refused the thorough look finds what is wrong: an AssertionError says that it does not."""
    try:
        found = structured(told, Tree, "tree")
    except ValueError:
        return

    assert structured(asdict(found), Tree, "tree") == found
    assert (found.name, list(found.words)) == (told["name"], told.get("words", []))
    assert found.weights == told.get("weights", {})
