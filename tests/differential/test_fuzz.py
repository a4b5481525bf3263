"""A command that hides among random parts of shell is not allowed where bash would run it."""

import pytest

from tests.differential.fuzz import allowed_although_it_runs, texts

pytestmark = pytest.mark.slow


def test_no_text_is_allowed_whose_payload_runs() -> None:
    assert allowed_although_it_runs(texts(2000, seed=1)) == []


def test_the_payload_of_an_allowed_text_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a harmless payload everything is allowed, and that it runs is found out."""
    monkeypatch.setattr("tests.differential.fuzz.RUN", ("ls", "-rf"))

    assert allowed_although_it_runs(["ls -rf", "echo 'ls -rf'"]) == ["ls -rf"]
