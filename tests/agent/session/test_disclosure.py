"""What the model is told of why a call was refused: nothing, the kind of reason, or all of it (`disclosure`)."""

import pytest

from agent import call
from agent.presets.shipped import preset_named
from agent.vocabulary.events import CallAnswered
from tests.agent.conftest import MakeAgent

WIPE, FORCE = "rm -rf /", "git push --force"
"""One that nobody may run, and one that somebody has to be asked about, while nobody is there."""


@pytest.mark.parametrize(
    ("command", "disclosure", "told"),
    [
        (WIPE, "none", "rejected: this call is not allowed"),
        (WIPE, "category", "rejected: destruction"),
        (WIPE, "full", "rejected: by_constitution: deny: "),
        (FORCE, "none", "rejected: this call is not allowed"),
        (FORCE, "category", "rejected: no person present"),
        (FORCE, "full", "denied: no person present (by_constitution: no person present: ask: "),
    ],
)
def test_the_model_is_told_as_much_of_a_refusal_as_disclosure_allows(
    make_agent: MakeAgent, command: str, disclosure: str, told: str
) -> None:
    preset = preset_named("default").with_options({"disclosure": disclosure})
    agent = make_agent(call("bash", command=command), "Well.", preset=preset)

    run = agent.run_sync("Go")

    [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
    assert answered.result.startswith(told)
    assert answered.outcome in ("rejected", "denied")
    if disclosure != "full":
        assert "by_constitution" not in answered.result


@pytest.mark.parametrize("disclosure", ["none", "category", "full"])
def test_what_is_wrong_with_a_call_itself_is_always_told(make_agent: MakeAgent, disclosure: str) -> None:
    """That is no judgement, and the model could not repair its call."""
    preset = preset_named("default").with_options({"disclosure": disclosure})
    agent = make_agent(call("bash", '{"command": "l'), "Well.", preset=preset)

    run = agent.run_sync("List")

    [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
    assert answered.result.startswith("not executed: truncated")
