"""The table of differences between the specified systems: for each option, what happens under each preset.

A row is a scene and what comes of it under each preset. `other` changes the option of `default`; then something else
must come of it. A new option needs a row here.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent.presets.equipment import BESIDES
from agent.tools.sandbox.sandbox import achieved
from tests.agent.presets import scenes
from tests.agent.presets.scenes import Scene

Changes = Mapping[str, Any]


@frozen
class Row:
    """One option: the scene that shows it, the outcome under each preset, and another choice than that of `default`."""

    option: str
    scene: Scene
    cells: Mapping[str, Any]
    other: Any


ORDER = ("default", "workspace", "autonomous", "coding", "gated", "passthrough")


def cells(*outcomes: Any) -> dict[str, Any]:
    """The outcomes under the presets, in their order."""
    return dict(zip(ORDER, outcomes, strict=True))


def all_alike(outcome: Any) -> dict[str, Any]:
    return dict.fromkeys(ORDER, outcome)


LIMIT_TEXT = "Stopped: maximum iteration limit reached."
QUESTION = "Approve command: chmod 777 notes.txt? (yes/no)"
ANSWERED, DOOMED = ("completed", "answered"), ("doom_loop", "doom_loop", 2)
NO_SUMMARY: list[str] = []
NO_QUESTION: list[str] = []
ASKED, RAN = ("ran", [QUESTION]), ("ran", NO_QUESTION)
TWENTY, THIRTY = ("limit", 20), ("completed", 30)
FIVE_FAILURES, SIX_FAILURES = ("failed", "too_many_failures", 5), ("completed", "answered", 6)
NEAREST, PLAIN = "not executed: unknown tool 'lok'; nearest: look", "not executed: unknown tool 'lok'"
TWO_MINUTES, ONE_MINUTE, ENDLESS = "120 seconds", "60 seconds", "as long as it takes"
ONE = ["proposed_action", "call_answered"]
ONE_BY_ONE, BOTH = ONE * 2, ["proposed_action", "proposed_action", "call_answered", "call_answered"]

FILES = ["list_directory", "read_file", "write_file"]
ALL_OF_S2 = ["bash", "edit", "find", "grep", "ls", "read", "todoread", "todowrite", "webfetch", "websearch", "write"]
FOR_PROCESSES = ("process_output", "process_stop")

ALL = sorted(["bash", *FILES, *FOR_PROCESSES, *BESIDES])

ROWS = (
    Row("tools", scenes.names_of_tools,
        cells(ALL, ["bash", *FILES], [*FILES[:2], "terminal", FILES[2]],
              ALL_OF_S2, ["bash", "list_files", "read_file", "write_file"], ["bash", "run_command"]), "gated"),
    Row("tools_file", scenes.a_declared_tool, all_alike("unknown"), "~/mine.yaml"),
    Row("max_iterations", scenes.thirty_turns, cells(TWENTY, TWENTY, ("limit", 25), THIRTY, THIRTY, THIRTY), 3),
    Row("limit_text", scenes.at_the_limit,
        all_alike(("limit", "max_iterations", LIMIT_TEXT))
        | {"autonomous": ("limit", "max_iterations", f"{LIMIT_TEXT}\n\nLast response: I look.")}, "Enough."),
    Row("stop_after", scenes.stopped_in_a_batch,
        all_alike(("stopped", ["seen 1", "skipped"])) | {"autonomous": ("stopped", ["seen 1", "seen 2"])}, "step"),
    Row("stop_text", scenes.nonstop_is_typed, all_alike("completed") | {"autonomous": "stopped"}, "letters"),
    Row("policy", scenes.dangerous_command,
        cells(ASKED, ("blocklist", NO_QUESTION), ASKED, RAN, ("open_to_everybody", NO_QUESTION), RAN), None),
    Row("policy", scenes.nobody_there,
        cells("nobody there", "nobody there", "nobody there", "ran", "reach_network", "ran"), None),
    Row("policy", scenes.dangerous_commands,
        cells("++----+??--?-", "--------?--?-", "+???+??????++", "+" * 13, "++----+------", "+" * 13), None),
    Row("policy_rules", scenes.a_harmless_command, all_alike("ran"), ("deny read",)),
    Row("commands", scenes.a_harmless_command, all_alike("ran"), ("deny -- cat notes.txt",)),
    Row("mode", scenes.three_categories,
        all_alike(["ran", "ran", "ran"]) | {"workspace": ["ran", "ran", "nobody there"]}, "cron"),
    Row("allow", scenes.three_categories_in_a_job,
        all_alike(["ran", "write_not_listed", "admin_not_listed"]), ("deploy_app",)),
    Row("unknown_tool", scenes.unknown_tool,
        cells(*[("completed", text) for text in (NEAREST, NEAREST, NEAREST, PLAIN, PLAIN, NEAREST)]), "error"),
    Row("max_failures", scenes.six_failures,
        all_alike(SIX_FAILURES) | {"default": FIVE_FAILURES, "autonomous": FIVE_FAILURES}, None),
    Row("max_empty_answers", scenes.three_empty_answers, all_alike(("failed", "empty_answers")), 4),
    Row("doom_loop", scenes.three_times_the_same,
        all_alike(("completed", "answered", 3)) | {"default": DOOMED, "passthrough": DOOMED}, None),
    Row("max_tokens", scenes.three_turns_of_a_hundred_tokens, all_alike(ANSWERED), 150),
    Row("max_tokens_per_iteration", scenes.three_turns_of_a_hundred_tokens, all_alike(ANSWERED), 50),
    Row("max_cost", scenes.three_turns_at_a_price, all_alike(ANSWERED), 0.0001),
    Row("prices", scenes.a_limit_on_cost,
        all_alike(("refused", "max_cost needs the price of 'scripted'")), ("scripted=1/1",)),
    Row("deadline", scenes.a_slow_tool, all_alike(ANSWERED), 0.05),
    Row("complete_tool", scenes.a_text_before_complete,
        all_alike(("completed", "answered", "Nearly.")) | {"autonomous": ("completed", "success", "All done.")}, True),
    Row("objective_tool", scenes.an_objective,
        all_alike(("completed", "answered", "Nearly.")) | {"autonomous": ("completed", "success", "All done.")}, True),
    Row("context_tokens", scenes.a_long_conversation, all_alike(21), 1000),
    Row("compaction", scenes.a_full_context, all_alike(NO_SUMMARY) | {"default": ["In short."]}, "trim"),
    Row("images", scenes.what_the_model_is_shown_again, all_alike((1, "I see.")), "drop"),
    Row("reasoning", scenes.what_the_model_is_shown_again, all_alike((1, "I see.")), "drop"),
    Row("attempts", scenes.four_broken_inferences, all_alike(("failed", "inference_failed")), 5),
    Row("sequential", scenes.batch_of_two, all_alike(ONE_BY_ONE), False),
    Row("together", scenes.calls_that_may_run_together,
        all_alike(("papapa", "papa")) | {"default": ("ppaapa", "ppaa")}, "none"),
    Row("steering", scenes.steered_in_a_batch, all_alike(["seen 1", "skipped"]), False),
    Row("follow_ups", scenes.two_follow_ups, all_alike(4), "all"),
    Row("max_follow_ups", scenes.when_follow_ups_are_heard,
        all_alike(["follow_up_given"] * 2 + ["run_continued"] * 2), 1),
    Row("bounded", scenes.reading_outside,
        cells("outside_allowed_paths", "outside_allowed_paths", "ran", "ran", "outside_allowed_paths", "ran"), False),
    Row("denied_paths", scenes.reading_a_key,
        cells("denied_path", "denied_path", "ran", "ran", "read_secret", "ran"), ()),
    Row("allowed_paths", scenes.reading_the_agents_folder,
        all_alike("outside_allowed_paths") | {"workspace": "ran", "coding": "permission denied"},
        ("~/.agent/workspace",)),
    Row("timeout", scenes.a_short_sleep,
        cells(*[("ran", said) for said in (TWO_MINUTES, TWO_MINUTES, TWO_MINUTES, ENDLESS, TWO_MINUTES, ONE_MINUTE)]),
        0.05),
    Row("max_timeout", scenes.an_hour_asked_for, cells("600", "600", "300", "none", "600", "600"), 500.0),
    Row("min_timeout", scenes.a_second_asked_for, all_alike("none") | {"autonomous": "60"}, 50.0),
    Row("shell", scenes.which_shell,
        cells("bash -c", "bash -c", "bash -c", "bash -c", "sh -c", "bash -lc"), "bash -lc"),
    Row("env", scenes.a_variable_of_ours, cells("", "", "ours", "ours", "ours", "ours"), "inherit"),
    Row("nonzero_is_error", scenes.exit_code_three,
        all_alike(("[exit code 3]", False)) | {"coding": ("[exit code 3]", True)}, True),
    Row("streams", scenes.both_streams,
        all_alike("err\nout\n") | {"autonomous": "stdout:\nout\nstderr:\nerr\n"}, "separate"),
    Row("output_lines", scenes.three_thousand_lines, all_alike(3000) | {"coding": 2000}, 10),
    Row("output_keep", scenes.both_ends, all_alike((True, True)) | {"coding": (False, True)}, "head"),
    Row("spill", scenes.a_whole_output_in_a_file, all_alike(False) | {"default": True, "coding": True}, False),
    Row("background", scenes.a_server_and_the_next_call, all_alike("killed") | {"default": "runs"}, "none"),
    Row("sandbox", scenes.a_write_beside_the_workspace,
        all_alike("written") | {"default": "kept out" if achieved() != "none" else "written"}, "off"),
    Row("compact", scenes.characters_of_a_long_line, all_alike(60_000) | {"passthrough": 6000}, 100),
    Row("result_form", scenes.form_of_a_result,
        all_alike("text") | {"passthrough": "z2e.tool_observation.v1"}, "envelope"),
    Row("output_limit", scenes.reading_a_long_file, cells(30_720, 204_800, 204_800, 51_200, 204_800, 65_536), 1000),
    Row("system_prompt", scenes.system_prompt,
        cells(
            "Every call is judged before it runs. A call that is rejected did not happen: read why, find another way"
            " or say so.",
            "Every call is judged before it runs. A call that is rejected did not happen: read why, find another way"
            " or say so. Commands like rm, sudo, dd and chmod 777 are never run.",
            "A person has to approve what deletes recursively, needs other privileges, reaches other hosts or changes"
            " the system;",
            "Look before you change something, change what the task needs, and check what you changed.",
            "Every call passes a gate that approves or rejects it; no user is asked. The calls of one turn run one"
            " after the other.",
            "Commands run as you write them, in a login shell; they are not checked first. Read the exit code of each.",
        ),
        "You are in {workspace}.\nYour tools: {tools}.\nBe brief."),
)  # fmt: skip

ELSEWHERE = {
    "config_file": "tests/agent/cli/test_configuring.py",
    "disclosure": "tests/agent/session/test_ends.py",
}
"""Options that no run of an agent shows, and where they are tested."""
