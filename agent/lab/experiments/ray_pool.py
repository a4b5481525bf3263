"""A pool on Ray, for many machines: of the shape of `concurrent.futures`, so that nothing else knows of it.

Without an address it starts Ray here; with RAY_ADDRESS it joins that cluster. The folder of the experiment has to be
the same on every machine, since rows and logs are written where they arise.
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any

from agent.vocabulary.errors import AgentError

__all__ = ["RayError", "RayPool", "check_ray"]


class RayError(AgentError):
    """Ray is not here, or no cluster of it."""


def check_ray() -> Any:
    """Return Ray. Raises RayError, which names the cure, where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    try:
        return import_module("ray")
    except ImportError as error:
        raise RayError("a pool on Ray needs ray: pip install 'bpagent[ray]'") from error


class RayPool(Executor):
    """Runs functions as tasks of Ray, `workers` at once where Ray is started here."""

    def __init__(self, workers: int) -> None:
        """Start Ray, or join the cluster of RAY_ADDRESS. Raises RayError."""
        self._ray = check_ray()
        here: dict[str, Any] = (
            {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
        )
        try:
            self._ray.init(ignore_reinit_error=True, log_to_driver=False, logging_level="error", **here)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RayError(f"Ray cannot be started, or reached: {error}") from error
        self._call = self._ray.remote(max_retries=0)(_call)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have Ray call a function with these arguments."""
        given: Future[Any] = Future()
        asked = self._call.remote(function, args, kwargs).future()
        asked.add_done_callback(lambda answered: self._pass_on(answered, given))
        return given

    def _pass_on(self, answered: "Future[Any]", given: "Future[Any]") -> None:
        error = answered.exception()
        if error is None:
            given.set_result(answered.result())
        elif isinstance(error, self._ray.exceptions.RaySystemError | self._ray.exceptions.WorkerCrashedError):
            given.set_exception(BrokenProcessPool(str(error)))
        else:
            given.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave Ray, and end what runs."""
        self._ray.shutdown()


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
