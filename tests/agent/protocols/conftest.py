"""The fixtures of the tests of protocols."""

from tests.agent.session.conftest import anyio_backend as anyio_backend
