"""What tests of the laboratory share: a machine on which episodes can be isolated, and a server of models."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.lab.isolation.levels import probe
from tests.agent.lab.experiments.minds import Mind
from tests.outside.model_server import ModelServer


@pytest.fixture(scope="session")
def isolating(needs: Callable[[str], Path]) -> None:
    """Skip where the system allows no namespaces. Where it does, ours have to be right."""
    needs("nsenter")
    least = ["--unshare-user", "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run([needs("bwrap"), *least], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this system makes no namespaces: {tried.stderr.strip()}")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server that thinks like the roles of an experiment."""
    server = ModelServer(Mind())
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-agent")
    yield server
    server.close()


@pytest.fixture
def untried() -> Iterator[None]:
    """A machine whose level is not known yet, and afterwards neither."""
    probe.cache_clear()
    yield
    probe.cache_clear()
