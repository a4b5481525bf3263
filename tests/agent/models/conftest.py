"""The server that the tests of models talk to."""

from collections.abc import Iterator

import pytest

from tests.agent.models.hostile_server import Server


@pytest.fixture
def anyio_backend() -> str:
    """Most of this differs on no event loop; the modules for which it does say so."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
