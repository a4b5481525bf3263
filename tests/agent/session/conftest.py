"""Runs are the same on both event loops, except where people and foreign code step in: those tests say so."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
