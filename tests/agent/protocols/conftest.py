"""The fixtures of the tests of protocols."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Most of this differs on no event loop; the modules for which it does say so."""
    return "asyncio"
