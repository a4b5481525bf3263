"""What tests of the laboratory share: a machine on which episodes can be isolated."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def isolating(needs: Callable[[str], Path]) -> None:
    """Skip where the system allows no namespaces. Where it does, ours have to be right."""
    needs("nsenter")
    least = ["--unshare-user", "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run([needs("bwrap"), *least], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this system makes no namespaces: {tried.stderr.strip()}")
