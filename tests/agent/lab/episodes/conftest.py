"""A model server that thinks like the roles of an experiment."""

from collections.abc import Iterator

import pytest

from tests.agent.lab.experiments.minds import Mind
from tests.outside.model_server import ModelServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    server = ModelServer(Mind())
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-agent")
    yield server
    server.close()
