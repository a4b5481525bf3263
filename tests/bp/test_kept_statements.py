"""Statements of plain words are made once: see `bp/statements.py`."""

from typing import Any

import pytest

from bp import any_of, event, sync, where
from bp.statements import _KEPT, MOST_KEPT, _checked
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"request": HOT},
        {"wait_for": HOT, "block": COLD},
        {"request": [HOT, COLD], "wait_for": (COLD, Ping), "interrupt": STOP},
        {"request": any_of(HOT, COLD), "hot": True},
        {"block": Ping, "refuse": [HOT, Pong], "because": "no"},
    ],
)
def test_the_same_plain_words_are_the_same_statement(words: dict[str, Any]) -> None:
    """So that what is said again and again is recognized by identity, and not made anew."""
    assert sync(**words) is sync(**words)
    assert sync(**words) == _checked(**dict.fromkeys(ORDER) | words | {"hot": words.get("hot", False)})


ORDER = ("request", "wait_for", "block", "interrupt", "refuse", "because", "otherwise")


@pytest.mark.parametrize(
    "words",
    [
        {"request": Ping(1)},
        {"request": event("warm", data=1)},
        {"wait_for": [HOT, event("warm", data=True)]},
        {"wait_for": where(Ping, value=1)},
        {"block": Ping | Pong},
        {"refuse": HOT, "because": 1},
        {"request": HOT, "otherwise": lambda refusals: COLD},
    ],
)
def test_other_words_are_a_statement_of_their_own_each_time(words: dict[str, Any]) -> None:
    """Their values may be equal and not the same: 1 and True."""
    assert sync(**words) is not sync(**words)
    assert sync(**words) == sync(**words)


def test_what_differs_in_any_word_is_another_statement() -> None:
    said = [
        sync(request=HOT), sync(wait_for=HOT), sync(block=HOT), sync(interrupt=HOT), sync(refuse=HOT, because="no"),
        sync(refuse=HOT, because="never"), sync(request=HOT, hot=True), sync(request=[HOT, COLD]),
        sync(request=any_of(HOT, COLD)), sync(request=[COLD, HOT]),
    ]  # fmt: skip

    assert len(set(said)) == len(said)


@pytest.mark.parametrize("hot", [1, 0, None, "yes"])
def test_what_equals_a_flag_is_none_even_after_the_flag_was_said(hot: Any) -> None:
    sync(request=HOT, hot=True)
    sync(request=HOT, hot=False)

    with pytest.raises(TypeError, match="give True or False"):
        sync(request=HOT, hot=hot)


@pytest.mark.parametrize("words", [{"request": 1}, {"wait_for": "hot"}, {"refuse": HOT}, {"because": "no"}])
def test_what_cannot_be_said_cannot_be_said_again(words: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            sync(**words)


def test_only_so_many_statements_are_kept() -> None:
    first = sync(wait_for=event("number 0"), block=HOT)

    for number in range(1, MOST_KEPT + 1):
        sync(wait_for=event(f"number {number}"), block=HOT)

    assert sync(wait_for=event("number 0"), block=HOT) == first
    assert sync(wait_for=event("number 0"), block=HOT) is not first
    assert len(_KEPT) <= MOST_KEPT
