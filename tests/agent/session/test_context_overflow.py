"""When a server says that the conversation is too long it is summed up once, or the run ends and says what to do."""

import pytest

from agent import call
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS
from agent.vocabulary.messages import UserMessage
from tests.agent.conftest import MakeAgent

pytestmark = pytest.mark.anyio

TOO_LONG = "This model's maximum context length is 8192 tokens"
OVERFLOW = fail(TOO_LONG, reason="context_length_exceeded")
LOOKS = [call("bash", command=f"seq {number} 2000") for number in range(1, 5)]
SUMMARY = "Four listings were looked at."


def without_steps(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(("inference", "summary", "run_ended", "backoff"))][8:]


async def test_the_older_part_is_summed_up_and_the_model_asked_again(make_agent: MakeAgent) -> None:
    agent = make_agent(*LOOKS, OVERFLOW, SUMMARY, "Done.")

    run = await agent.run("Look")

    assert (run.status, run.text) == ("completed", "Done.")
    assert without_steps([event.name for event in run.events]) == [
        "inference_requested", "inference_failed", "summary_requested", "summary_finished",
        "inference_requested", "inference_finished", "run_ended",
    ]  # fmt: skip
    too_long, _, again = agent.model.requests[-3:]  # type: ignore[attr-defined]
    assert len(again.messages) < len(too_long.messages)
    assert isinstance(again.messages[0], UserMessage)
    assert SUMMARY in again.messages[0].text
    assert len(run.messages) == 10  # the conversation keeps everything


async def test_without_a_summary_older_messages_are_left_out(make_agent: MakeAgent) -> None:
    agent = make_agent(*LOOKS, OVERFLOW, fail("busy"), "Done.")

    run = await agent.run("Look")

    assert run.status == "completed"
    assert agent.model.requests[-1].messages[0].text == "[Earlier messages were left out to make room.]"  # type: ignore[attr-defined]


async def test_a_second_time_in_one_turn_ends_the_run_with_its_reason_and_the_options(make_agent: MakeAgent) -> None:
    run = await make_agent(*LOOKS, OVERFLOW, SUMMARY, OVERFLOW, "Never asked for.").run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert run.text == (
        f"The conversation is too long for the model, also without its older part: {TOO_LONG}. "
        "Give a smaller output_limit, or the size of the model's context as context_tokens."
    )


async def test_where_nothing_can_be_left_out_the_model_is_not_asked_again(make_agent: MakeAgent) -> None:
    agent = make_agent(OVERFLOW, "Never asked for.")

    run = await agent.run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


async def test_in_another_turn_it_is_summed_up_again(make_agent: MakeAgent) -> None:
    script = [*LOOKS, OVERFLOW, SUMMARY, call("bash", command="seq 9 2000"), OVERFLOW, SUMMARY, "Done."]

    run = await make_agent(*script).run("Look")

    assert (run.status, run.text) == ("completed", "Done.")


@pytest.mark.parametrize("preset", ["workspace", "autonomous", "coding", "gated", "passthrough"])
async def test_a_preset_that_sums_nothing_up_ends_and_names_the_options(make_agent: MakeAgent, preset: str) -> None:
    agent = make_agent(OVERFLOW, preset=PRESETS[preset])

    run = await agent.run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert run.text == (
        f"The conversation is too long for the model: {TOO_LONG}. "
        "Give compaction=summary, or the size of the model's context as context_tokens."
    )
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]
