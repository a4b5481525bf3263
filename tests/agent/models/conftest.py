"""The server that the tests of models talk to."""

from collections.abc import Iterator

import pytest

from tests.agent.models.hostile_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
