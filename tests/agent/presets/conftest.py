"""The fixtures of the tests of presets."""

from tests.agent.session.conftest import anyio_backend as anyio_backend
