"""A right to one host lets a call reach that host, through a proxy of its own, and nothing else."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agent import call
from agent.presets.equipment import equip
from agent.presets.shipped import DEFAULT
from agent.tools.sandbox.rights import hosts_of, is_right
from agent.tools.sandbox.sandbox import Sandbox, why_not
from agent.vocabulary.events import ApprovalAsked, SandboxLifted, ToolFinished
from tests.agent.conftest import MakeAgent
from tests.tables import rows


class Site(BaseHTTPRequestHandler):
    """A site that says which host it was asked as."""

    def do_GET(self) -> None:
        content = f"hello from {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def site() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def sandbox(workspace: Path, needs: Callable[[str], Path]) -> Sandbox:
    needs("bwrap"), needs("curl")
    if why := why_not("bubblewrap"):
        pytest.skip(why)
    return Sandbox((str(workspace),), "bubblewrap")


def run(sandbox: Sandbox, command: str, *rights: str) -> "subprocess.CompletedProcess[str]":
    workspace = sandbox.writable[0]
    env = sandbox.environment({"PATH": os.environ["PATH"]}, rights)
    return subprocess.run(
        [*sandbox.prefix(workspace, rights), "bash", "-c", command], cwd=workspace, env=env, capture_output=True,
        text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_granted_host_is_reached_by_http_and_by_connect(sandbox: Sandbox) -> None:
    with site() as port:
        plain = run(sandbox, f"curl -s --noproxy none http://127.0.0.1:{port}/", "network 127.0.0.1")
        tunnel = run(sandbox, f"curl -s -p --noproxy none http://127.0.0.1:{port}/", "network 127.0.0.1")

    assert plain.stdout == tunnel.stdout == f"hello from 127.0.0.1:{port}"


@pytest.mark.slow
@rows(
    "command",
    [
        "curl -s -m 5 --noproxy none http://127.0.0.1:{port}/",
        "curl -s -m 5 -p --noproxy none http://127.0.0.1:{port}/",
        "curl -s -m 5 --noproxy none http://localhost:{port}/",
        "curl -s -m 5 --noproxy none -H 'Host: other.example' http://127.0.0.1:{port}/",
        "curl -s -m 5 --noproxy none http://other.example@127.0.0.1:{port}/",
        "curl -s -m 5 http://127.0.0.1:{port}/",
        "exec 3<>/dev/tcp/127.0.0.1/{port}",
        "curl -s -m 5 --unix-socket /run/egress/socket http://127.0.0.1:{port}/",
    ],
)
def test_no_other_host_is_reached(command: str, sandbox: Sandbox) -> None:
    with site() as port:
        done = run(sandbox, command.format(port=port), "network other.example")

    assert "hello" not in done.stdout
    assert done.returncode != 0 or "was not granted" in done.stdout


@pytest.mark.slow
def test_a_granted_name_that_leads_to_this_machine_is_not_reached(sandbox: Sandbox) -> None:
    with site() as port:
        done = run(sandbox, f"curl -s --noproxy none http://localhost:{port}/", "network localhost")

    assert done.stdout == "blocked by the sandbox: network; localhost has no address that may be reached\n"


@pytest.mark.slow
def test_the_call_ends_as_its_command_does_and_leaves_nothing(sandbox: Sandbox) -> None:
    before = set(Path("/tmp").glob("bpagent-egress-*"))

    done = run(sandbox, "env | grep -i _proxy | wc -l; exit 7", "network other.example")

    assert (done.returncode, done.stdout, done.stderr) == (7, "8\n", "")
    assert set(Path("/tmp").glob("bpagent-egress-*")) == before


@pytest.mark.slow
def test_the_question_names_the_host_and_the_yes_is_for_it_alone(
    make_agent: MakeAgent, workspace: Path, sandbox: Sandbox
) -> None:
    with site() as port:
        fetch = f"curl -s -m 9 --noproxy none http://127.0.0.1:{port}/"
        steps = [call("bash", command=fetch, rights=[f"network {host}"]) for host in ("127.0.0.1", "other.example")]
        agent = make_agent(*steps, "Done.", tools=equip(DEFAULT, workspace), preset=DEFAULT, approve=lambda _: True)
        run = agent.run_sync("Go")

    asked = [event.question for event in run.events if isinstance(event, ApprovalAsked)]
    assert [question.splitlines()[-1] for question in asked] == [
        "a yes lets this one call reach 127.0.0.1", "a yes lets this one call reach other.example"
    ]  # fmt: skip
    assert [event.rights for event in run.events if isinstance(event, SandboxLifted)] == [
        ("network 127.0.0.1",), ("network other.example",)
    ]  # fmt: skip
    first, second = (event for event in run.events if isinstance(event, ToolFinished))
    assert f"hello from 127.0.0.1:{port}" in first.result
    assert "still running" not in first.result
    assert "127.0.0.1 was not granted" in second.result


def test_rights_to_hosts_are_read_strictly() -> None:
    assert is_right("network example.com")
    assert not any(
        map(is_right, ("network ", "network a b", "network a,b", "network -x", "network A.com", "network a\n"))
    )
    assert hosts_of(["network a.com", "network b.com"]) == ("a.com", "b.com")
    assert hosts_of(["network a.com", "network"]) == ()
