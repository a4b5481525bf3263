"""Presets by name: which b-threads, which policy, which limits and texts.

There is one for each specified system, and `default`, the recommended one. Each lists what it changes; every field is
one option (`--option NAME=VALUE` on the command line).
"""

from agent.presets import prompts
from agent.presets.preset import OptionError, Preset
from agent.vocabulary.errors import meant
from constitution import POLICIES

__all__ = ["PRESETS", "PURPOSES", "OptionError", "Preset", "preset_named"]

DEFAULT = Preset(
    "default",
    tools="all",
    together="neighbours",
    compaction="summary",
    output_limit=30 * 1024,
    spill=True,
    background="run",
)

WORKSPACE = Preset(
    "workspace",  # S0
    policy="workspace",
    allowed_paths=("~/.agent/workspace", "/tmp/agent"),
    config_file="~/.agent/config.yaml",
    tools_file="~/.agent/tools.yaml",
    max_failures=None,
    doom_loop=None,
    system_prompt=prompts.WORKSPACE,
)

AUTONOMOUS = Preset(
    "autonomous",  # S1
    policy="approval_list",
    bounded=False,
    denied_paths=(),
    max_iterations=25,
    doom_loop=None,
    complete_tool=True,
    objective_tool=True,
    stop_after="step",
    stop_text="letters",
    tools="terminal",
    max_timeout=300.0,
    min_timeout=60.0,
    streams="separate",
    env="inherit",
    system_prompt=prompts.AUTONOMOUS,
)

CODING = Preset(
    "coding",  # S2
    policy=None,
    bounded=False,
    denied_paths=(),
    max_iterations=None,
    max_failures=None,
    doom_loop=None,
    tools="coding",
    unknown_tool="error",
    timeout=None,
    max_timeout=None,
    output_limit=50 * 1024,
    output_lines=2000,
    output_keep="tail",
    spill=True,
    nonzero_is_error=True,
    env="inherit",
    system_prompt=prompts.CODING,
)

GATED = Preset(
    "gated",  # S3
    policy="gated",
    denied_paths=(),
    max_iterations=None,
    max_failures=None,
    doom_loop=None,
    tools="gated",
    unknown_tool="error",
    shell="sh -c",
    env="inherit",
    sandbox="required",
    system_prompt=prompts.GATED,
)

PASSTHROUGH = Preset(
    "passthrough",  # S4
    policy="passthrough",
    bounded=False,
    denied_paths=(),
    max_iterations=None,
    max_failures=None,
    tools="command",
    shell="bash -lc",
    timeout=60.0,
    output_limit=64 * 1024,
    compact=6000,
    result_form="envelope",
    env="inherit",
    sandbox="off",
    system_prompt=prompts.PASSTHROUGH,
)

PRESETS = {preset.name: preset for preset in (DEFAULT, WORKSPACE, AUTONOMOUS, CODING, GATED, PASSTHROUGH)}

PURPOSES = {
    "default": "most work: everything is judged, what is doubtful is asked; turns, failures and repetition are limited",
    "workspace": "scheduled jobs and tools of your own from YAML: bounded by paths, a blocklist and a job policy",
    "autonomous": "objectives of many steps: works on until it says it is done; a person approves what is on a list",
    "coding": "a machine that may break, such as a container: twelve tools, nothing is judged, nothing is limited",
    "gated": "programs that run unattended: a gate approves or rejects within the workspace, without questions",
    "passthrough": "a shell alone, where all may happen: commands run as they are, until one comes three times",
}
"""The purpose of each preset, in one line."""


def preset_named(name: str) -> Preset:
    """Return a preset. Raises OptionError for an unknown name, naming the nearest."""
    if name not in PRESETS and name in POLICIES:
        raise OptionError(f"there is no preset {name!r}, but a policy: --option policy={name}")
    if name not in PRESETS:
        raise OptionError(f"there is no preset {name!r}; {meant(name, PRESETS)}")
    return PRESETS[name]
