"""Most tests here verify tiny programs, for which a few runs in this process are enough; others ask for copies."""

import pytest

from bp import verify
from bp.verification import agreement


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if not request.path.name.startswith("test_agreement"):
        monkeypatch.setitem(verify.__kwdefaults__ or {}, "runs", 8)
        for name in ("forked", "fresh"):
            monkeypatch.setattr(agreement, name, lambda *_: None)
