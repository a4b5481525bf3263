"""Scores of Inspect as values of checks: the one that is meant, as a share from 0 to 1. Needs no Inspect.

A score is named by its scorer, or by its entry in the scorer's mapping. No score is ever made up: an unscored sample, a
name that no score has, and a value that is no share are errors, which fail the episode.
"""

from collections.abc import Iterator, Mapping

from agent.lab.settings.tasks import share_of
from agent.vocabulary.errors import AgentError

WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""The values that scorers write as words, as Inspect reads them."""


class ScoreError(AgentError):
    """A sample has no score of a name, or none at all."""


def share_named(name: str, scores: Mapping[str, object], *, beside: str = "") -> float:
    """Return the score of a name as a share; `scores`: the values of the scorers by name, None for none.

    beside: the name of another check's score. Where there is no score "main", the only one beside that is meant.
    """
    entries = dict(_entries(scores))
    named = [entry for entry in entries if _is_named(entry, name)]
    if name == "main" and not named:
        named = [entry for entry in entries if not (beside and _is_named(entry, beside))]
    if len(named) != 1:
        problem = f"the score {name!r} may be one of" if named else f"there is no score {name!r}; there are"
        raise ScoreError(f"{problem}: {', '.join(named or entries) or 'none'}; name one of them: main=..., side=...")
    return _share(named[0], entries[named[0]])


def _entries(scores: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the single scores, those in mappings as `scorer/entry`."""
    for scorer, value in scores.items():
        if isinstance(value, Mapping):
            yield from ((f"{scorer}/{entry}", each) for entry, each in value.items())
        else:
            yield scorer, value


def _is_named(entry: str, name: str) -> bool:
    scorer, _, part = entry.partition("/")
    return name in (entry, scorer, part)


def _share(entry: str, value: object) -> float:
    """Return a value as a share. Raises ScoreError."""
    number = _number(value) if isinstance(value, str) else value
    if value is None or number != number:  # NaN is Inspect's sign for it
        raise ScoreError(f"the scorer {entry!r} has not scored the sample")
    share = share_of(number)
    if share is None:
        raise ScoreError(f"the scorer {entry!r} gave {value!r}, which is no number from 0 to 1")
    return share


def _number(text: str) -> float | None:
    """Return a word or a written number as a number; None for another text."""
    try:
        return WORDS.get(text, WORDS.get(text.lower())) if text.isalpha() else float(text)
    except ValueError:
        return None
