"""What happens under a preset when commands run: shell, environment, time, output, and the form of the answer."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Preset, call
from agent.vocabulary.messages import ToolMessage
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import Scene, fate, results, within


async def a_short_sleep(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """What becomes of a command that takes a moment, and how long the model is told that commands may take."""
    preset = evolve(preset, result_form="text")
    agent = make_agent(
        call("bash", command="sleep 0.2; echo ran"),
        "Done.",
        tools=within(preset, Path.home() / "workspace"),
        preset=preset,
    )

    run = await agent.run("Sleep")

    said = re.search(r"A command ends after (.*) unless", agent.system_prompt)
    return fate(results(run)[0]), said[1] if said else ""


def command(outcome: Callable[[ToolMessage], Any], text: str, *, seconds: int | None = None, **changes: Any) -> Scene:
    """A command that nothing judges, and what is made of its answer; `changes` are the same for each preset."""
    arguments: dict[str, Any] = {"command": text} if seconds is None else {"command": text, "timeout": seconds}

    async def play(make_agent: MakeAgent, preset: Preset) -> Any:
        preset = evolve(preset, policy=None, **changes)
        tools = within(preset, Path.home() / "workspace")
        run = await make_agent(call("bash", arguments), "Done.", tools=tools, preset=preset).run("Go")
        return outcome(next(message for message in run.messages if isinstance(message, ToolMessage)))

    return play


WORDS: dict[str, Any] = {"result_form": "text", "compact": None}
"""What is answered in words, all of them."""


def found(pattern: str) -> Callable[[ToolMessage], str]:
    """Finds a part of an answer."""
    return lambda answered: match[1] if (match := re.search(pattern, answered.text)) else "none"


an_hour_asked_for = command(found(r"timeout of 3600 seconds clamped to (\d+)"), "true", seconds=3600, **WORDS)
"""To how many seconds a timeout of an hour is cut."""


a_second_asked_for = command(found(r"timeout of 1 seconds raised to (\d+)"), "true", seconds=1, **WORDS)
"""To how many seconds a timeout of one second is raised."""


which_shell = command(lambda answered: " ".join(answered.text.split()[:2]), 'tr "\\0" " " < /proc/$$/cmdline', **WORDS)
"""Which shell runs a command, and whether it is a login shell."""


async def a_variable_of_ours(make_agent: MakeAgent, preset: Preset) -> Any:
    """What a command sees of a variable that is not on the list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OF_OURS", "ours")
        return await command(
            lambda answered: answered.text.replace("(no output)", "").strip(), 'echo "$OF_OURS"', **WORDS
        )(make_agent, preset)


both_streams = command(lambda answered: answered.text, "echo err >&2; echo out", **WORDS)
"""How the model is told of standard output and error."""


three_thousand_lines = command(
    lambda answered: answered.text.splitlines().count("line"), "yes line | head -n 3000", **WORDS
)
"""How many of 3,000 lines the model is shown."""


both_ends = command(
    lambda answered: tuple(line in answered.text.splitlines() for line in ("first", "last")),
    "echo first; yes | head -n 2000; echo last",
    output_limit=1000,
    **WORDS,
)
"""Whether the model is shown the beginning and the end of a long output."""


def whole_in_a_file(answered: ToolMessage) -> bool:
    files = [file for word in re.findall(r"/[^\s\]]+", answered.text) if (file := Path(word)).is_file()]
    assert all(file.read_bytes() == b"y\n" * 2000 for file in files)
    return bool(files)


a_whole_output_in_a_file = command(whole_in_a_file, "yes | head -n 2000", output_limit=1000, **WORDS)
"""Whether the model is told of a file with all of a long output."""


characters_of_a_long_line = command(
    lambda answered: len(answered.text),
    "head -c 60000 /dev/zero | tr '\\0' x",
    result_form="text",
    output_limit=200_000,
)
"""How many characters of a line of 60,000 the model is shown."""


form_of_a_result = command(
    lambda answered: str(json.loads(answered.text)["schema"]) if answered.text.startswith("{") else "text", "echo ran"
)
"""The schema of what a command answers, or "text"."""


exit_code_three = command(lambda answered: (answered.text.splitlines()[-1], answered.is_error), "exit 3", **WORDS)
"""What the model is told of a command that exits with 3, and whether that is an error."""


async def a_server_and_the_next_call(make_agent: MakeAgent, preset: Preset) -> str:
    """What becomes of a process that a call leaves running."""
    preset = evolve(preset, policy=None, result_form="text")
    tools = within(preset, Path.home() / "workspace")
    shell = next(tool.name for tool in tools if tool.command_in)
    stays = {"background": True} if "background" in str(tools[0].parameters) else {}
    command = "sleep 300" if stays else "sleep 300 &"
    agent = make_agent(call(shell, {"command": command, **stays}), "Done.", tools=tools, preset=preset)

    run = await agent.run("Serve")

    return "runs" if "runs in the background" in results(run)[0] else "killed"


async def a_write_beside_the_workspace(make_agent: MakeAgent, preset: Preset) -> Any:
    """What becomes of a write outside of the workspace that nothing judges."""
    canary = Path.home() / "canary.txt"
    canary.write_text("alive")

    written = command(
        lambda _: "kept out" if canary.read_text() == "alive" else "written", f"echo gone > {canary}", **WORDS
    )
    return await written(make_agent, preset)
