"""A right to one host lets a call reach that host, through a proxy of its own, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import call
from agent.effects.execution import describe
from agent.presets import DEFAULT
from agent.presets.equipment import equip
from agent.tools.background import Processes
from agent.tools.definition import Toolbox, ToolContext
from agent.tools.sandbox.permissions import hosts_of, is_right, needed_for
from agent.tools.sandbox.proxy import TO_PROXY
from agent.tools.sandbox.sandbox import Sandbox, why_not
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.terminal import make_terminal
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAsked, SandboxLifted, ToolFinished
from constitution import Action, effects_of
from tests.agent.conftest import MakeAgent
from tests.agent.tools.conftest import Site
from tests.tables import rows


@pytest.fixture
def port(site: Site) -> str:
    """The port of a server that says hello."""
    return site.put("/", "hello").split(":")[2].rstrip("/")


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
        text=True, timeout=100, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@pytest.mark.slow
@rows(
    ("host", "more", "said"),
    [
        ("127.0.0.1:{port}", "", "hello"),
        ("127.0.0.1:{port}", "-p", "hello"),
        ("localhost:{port}", "", "blocked by the sandbox: network; localhost has no address that may be reached"),
        ("no-such-host.invalid", "", "no-such-host.invalid cannot be reached: "),
    ],
)
def test_the_granted_host_is_reached_unless_it_is_another_name_of_this_machine(
    host: str, more: str, said: str, sandbox: Sandbox, port: str, site: Site
) -> None:
    fetch = f"curl -s {more} --noproxy none http://{host.format(port=port)}/"
    done = run(sandbox, fetch, f"network {host.partition(':')[0]}")

    assert done.stdout.startswith(said)
    assert {headers["Host"] for _, headers, _ in site.asked} == {f"127.0.0.1:{port}"}


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
    ],
)
def test_no_other_host_is_reached(command: str, sandbox: Sandbox, port: str) -> None:
    done = run(sandbox, command.format(port=port), "network other.example")

    assert "hello" not in done.stdout
    assert done.returncode != 0 or "blocked by the sandbox: network; " in done.stdout


SERVER = "import socket; s = socket.create_server(('127.0.0.1', 4713)); print('up', flush=True); s.accept()"


@pytest.mark.slow
def test_a_call_with_a_host_reaches_the_servers_of_the_agent_too(sandbox: Sandbox, port: str) -> None:
    prefix = sandbox.prefix(sandbox.writable[0])
    both = "exec 3<>/dev/tcp/127.0.0.1/4713 && curl -s --noproxy none http://127.0.0.1:{port}/"
    with subprocess.Popen([*prefix, sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        done = run(sandbox, both.format(port=port), "network 127.0.0.1")
        server.kill()

    assert done.stdout == "hello"


@pytest.mark.slow
def test_a_neighbour_in_the_loopback_cannot_use_the_proxy_of_a_call(sandbox: Sandbox, port: str) -> None:
    """The loopback is that of all commands of the agent; the proxy in it wants a key that the call alone knows."""
    use = f"curl -s --noproxy none http://127.0.0.1:{port}/ -x ${{http_proxy/*@/http://PROXY}}"
    stranger = run(sandbox, use.replace("PROXY", ""), "network 127.0.0.1")
    guess = run(sandbox, use.replace("PROXY", "call:key@"), "network 127.0.0.1")

    assert "hello" not in stranger.stdout + guess.stdout
    assert stranger.stdout.startswith("blocked by the sandbox: network; ")


@pytest.mark.slow
def test_the_call_ends_as_its_command_does(sandbox: Sandbox) -> None:
    done = run(sandbox, "env | grep -i _proxy | wc -l; exit 7", "network other.example")

    assert (done.returncode, done.stdout, done.stderr) == (7, "8\n", "")


@pytest.mark.slow
def test_a_key_opens_its_hosts_until_its_call_is_over(sandbox: Sandbox, port: str) -> None:
    """The next call can use the key that an earlier one left in the workspace; it finds the door closed."""
    first, second = (sandbox.environment({"PATH": os.environ["PATH"]}, [f"network {host}"]) for host in HOSTS)
    fetch = f"curl -s --noproxy none -x {first['http_proxy']} http://127.0.0.1:{port}/"
    words = [*sandbox.prefix(sandbox.writable[0], ["network other.example"]), "sh", "-c", fetch]
    told = [subprocess.run(words, env=second, capture_output=True, text=True, check=False).stdout]
    refused = subprocess.run([*words[:-1], f"curl -s http://127.0.0.1:{port}/ --noproxy x"], env=second, check=False)

    released = sandbox.release(first), sandbox.release(second)
    told.append(subprocess.run(words, env=second, capture_output=True, text=True, check=False).stdout)

    assert told == ["hello", "blocked by the sandbox: network; the key of the call is missing\n"]
    assert (refused.returncode, released) == (0, ((), ("127.0.0.1",)))


HOSTS = ("127.0.0.1", "other.example")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.xfail(strict=False, reason="once in some thirty runs the process in the background did not start")
async def test_the_key_of_a_background_process_is_good_until_that_ends(sandbox: Sandbox, port: str) -> None:
    processes = Processes()
    bash = make_shell_tool(sandbox.writable[0], ShellOptions(sandbox=sandbox), processes=processes)
    rights = ToolContext(rights=("network 127.0.0.1",))
    os.mkfifo(os.path.join(sandbox.writable[0], "end"))
    leave = "echo $http_proxy > proxy; read _ < end"
    fetch = {"command": f"curl -s --noproxy none -x $(cat proxy) http://127.0.0.1:{port}/"}

    await bash.run({"command": leave, "background": True}, rights)
    await bash.run({"command": "until [ -s proxy ]; do :; done", "timeout": 20})
    during = await bash.run(fetch)
    await bash.run({"command": "echo > end", "timeout": 20})
    while processes.running():
        await processes.news()

    assert during.text == "hello"
    assert "the key of the call is missing" in (await bash.run(fetch)).text


@pytest.mark.slow
def test_the_question_names_the_host_and_the_yes_is_for_it_alone(
    make_agent: MakeAgent, workspace: Path, sandbox: Sandbox, port: str
) -> None:
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
    assert "hello" in first.result.text
    assert "still running" not in first.result.text
    assert "127.0.0.1 was not granted" in second.result.text
    assert second.result.details["blocked"] == ("network 127.0.0.1",)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_command_of_a_session_gets_a_host_and_the_session_keeps_no_proxy(sandbox: Sandbox) -> None:
    terminal = make_terminal(sandbox.writable[0], ShellOptions(sandbox=sandbox))
    asked = {"command": "cd /usr; A=1; echo ${http_proxy%%:*}", "persistent": True, "rights": ["network other.example"]}

    await terminal.run(asked, ToolContext(rights=("network other.example",)))
    after = await terminal.run({"command": 'echo "$PWD $A [$http_proxy$NO_PROXY]"', "persistent": True})

    assert after.text == "/usr 1 []\n"


def test_rights_to_hosts_are_read_strictly() -> None:
    assert is_right("network example.com")
    assert not any(
        map(is_right, ("network ", "network a b", "network a,b", "network -x", "network A.com", "network a\n"))
    )
    assert hosts_of(["network a.com", "network b.com"]) == ("a.com", "b.com")
    assert hosts_of(["network a.com", "network"]) == ()


NEEDS = {
    "curl https://example.org": "network example.org",
    "cd x && curl -s -d @f -o out https://Example.ORG:8080/a | jq .": "network example.org",
    "timeout 5 wget https://a.org/$(date) http://b.org": "network a.org, network b.org",
    "git clone https://github.com/a/b c": "network github.com",
    'curl -H "Token: $TOKEN" https://example.org': "network example.org",
    "curl https://example.org; git push": "network",
    "curl https://example.org | sh": "network",
    "curl $WHERE https://example.org": "network",
    "curl -x proxy.org:80 https://example.org": "network",
    "curl https://exa[1-9].org": "network",
    "curl example.org": "network",
    "nc example.org 80": "network",
    "pip install requests": "network",
    "sh -c 'curl https://example.org'": "network example.org",
}


def test_a_yes_to_a_command_is_one_to_the_hosts_that_it_names() -> None:
    def needs(command: str, by_host: bool = True) -> str:
        action = Action("bash", "write", "/w", "/w", "/h", command=command)
        return ", ".join(needed_for(effects_of(action), by_host=by_host))

    assert {command: needs(command) for command in NEEDS} == NEEDS
    assert needs("curl https://example.org", by_host=False) == "network"


def test_behind_a_proxy_of_the_user_a_yes_is_one_to_the_network(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call with a host goes straight to it, past that proxy."""
    for name in TO_PROXY:
        monkeypatch.delenv(name, raising=False)
    toolbox = Toolbox(equip(DEFAULT, sandbox.writable[0]), Workspace(sandbox.writable[0]))
    fetch = ToolCall("1", "bash", {"command": "curl https://example.org"})
    told = [describe(fetch, toolbox).needs]
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    told.append(describe(fetch, toolbox).needs)

    assert told == [("network example.org",), ("network",)]
