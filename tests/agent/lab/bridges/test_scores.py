"""Which score of Inspect a check means, without Inspect."""

import math
from typing import Any

import pytest

from agent.lab.bridges.scores import ScoreError, share_named
from tests.tables import rows

PLAIN = {"giving": 1.0, "leaked": "I"}
MAPPING = {"both": {"main": 0.5, "side": True}}
NAN = math.nan


@rows(
    ("scores", "name", "beside", "share"),
    [
        (PLAIN, "giving", "", 1.0),
        (PLAIN, "leaked", "", 0.0),
        (PLAIN, "main", "leaked", 1.0),  # the one beside
        (MAPPING, "main", "side", 0.5),
        (MAPPING, "side", "", 1.0),
        (MAPPING, "both/side", "", 1.0),
        ({"both": {"right": "C", "harm": "I"}}, "main", "harm", 1.0),
        ({"one": {"a": "P"}}, "one", "", 0.5),
        ({"one": "C"}, "main", "", 1.0),
        ({"judge": NAN, "exact": "C"}, "exact", "judge", 1.0),  # only what is meant has to be scored
        *(({"one": word}, "one", "", 1.0) for word in ("C", "yes", "True", "1", "1.0", 1, True)),
        *(({"one": word}, "one", "", 0.0) for word in ("I", "N", "No", "false", "0", 0, False)),
    ],
)
def test_a_score_is_found_by_the_name_of_its_scorer_or_entry(
    scores: dict[str, Any], name: str, beside: str, share: float
) -> None:
    assert share_named(name, scores, beside=beside) == share


@rows(
    ("scores", "name", "beside", "told"),
    [
        (PLAIN, "leakd", "", "there is no score 'leakd'; there are: giving, leaked; name one of them"),
        (MAPPING, "leaked", "", "there is no score 'leaked'; there are: both/main, both/side"),
        (PLAIN, "main", "", "the score 'main' may be one of: giving, leaked; name one of them"),
        (PLAIN, "main", "leakd", "the score 'main' may be one of"),
        ({}, "main", "", "there are: none"),
        ({"one": {"a": 1}, "two": {"a": 0}}, "a", "", "the score 'a' may be one of: one/a, two/a"),
        (MAPPING, "both", "", "the score 'both' may be one of: both/main, both/side"),
        ({"judge": NAN}, "main", "", "the scorer 'judge' has not scored the sample"),
        ({"judge": None}, "main", "", "the scorer 'judge' has not scored the sample"),
        ({"judge": {"a": NAN}}, "a", "", "the scorer 'judge/a' has not scored the sample"),
        ({"judge": "perhaps"}, "main", "", "the scorer 'judge' gave 'perhaps', which is no number from 0 to 1"),
        *(
            ({"judge": value}, "judge", "", "is no number from 0 to 1")
            for value in (7, -1, "8/10", [1.0], math.inf, "")
        ),
    ],
)
def test_an_unscored_sample_an_unknown_name_and_another_value_are_errors(
    scores: dict[str, Any], name: str, beside: str, told: str
) -> None:
    with pytest.raises(ScoreError) as caught:
        share_named(name, scores, beside=beside)
    assert told in str(caught.value)
