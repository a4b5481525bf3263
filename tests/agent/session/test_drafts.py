"""Drafts of several models: who is asked, what each is shown, and that a turn has one answer in the end."""

import pytest

from agent import ScriptedModel, answer, call
from agent.vocabulary.events import (
    AnswerCommitted,
    DraftsRefused,
    DraftsSettled,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.messages import Usage, UserMessage
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, event, sync, where
from tests.agent.conftest import MakeAgent

FORGONE = event("forgone")


@bthread
def prefer(role: str, note: str = "") -> BThreadBody:
    """Have another role asked as well, and refuse the loop's own draft."""
    while True:
        yield sync(wait_for=where(InferenceFinished, draft="d0"))
        yield sync(request=InferenceRequested("other", role, note), block=DraftsSettled)
        yield sync(refuse=where(AnswerCommitted, draft="d0"), because="no", wait_for=AnswerCommitted | DraftsRefused)


def test_each_role_has_a_model_of_its_own(make_agent: MakeAgent) -> None:
    trusted = ScriptedModel(["I am trusted."], name="small")
    agent = make_agent("I am not.", threads=[prefer("trusted")], models={"trusted": trusted})

    run = agent.run_sync("Who are you?")

    assert run.text == "I am trusted."
    assert [request.role for request in trusted.requests] == ["trusted"]
    assert [message.text for message in run.messages] == ["Who are you?", "I am trusted."]


def test_a_draft_that_was_not_committed_is_in_nobodys_context(make_agent: MakeAgent) -> None:
    trusted = ScriptedModel([call("bash", command="ls"), "Done."])
    agent = make_agent("Secret plan.", "More of it.", threads=[prefer("trusted")], models={"trusted": trusted})

    agent.run_sync("Look around")

    shown = [message.text for request in trusted.requests for message in request.messages]
    assert "Secret plan." not in shown


def test_a_note_is_the_last_message_that_its_model_sees_and_stays_out_of_the_conversation(
    make_agent: MakeAgent,
) -> None:
    editor = ScriptedModel(["Edited."])
    agent = make_agent("Raw.", threads=[prefer("editor", "Improve this: Raw.")], models={"editor": editor})

    run = agent.run_sync("Write")

    assert editor.requests[0].messages[-1] == UserMessage("Improve this: Raw.")
    assert [message.text for message in run.messages] == ["Write", "Edited."]


def test_a_role_that_nobody_has_is_not_given_to_the_agents_model(make_agent: MakeAgent) -> None:
    agent = make_agent("Raw.", "Raw again.", threads=[prefer("trusted")])

    run = agent.run_sync("Write")

    [failed] = [event for event in run.events if isinstance(event, InferenceFailed)]
    assert failed.error == (
        "no model has the role 'trusted'; give one: Agent(models={'trusted': model}), or --role trusted=MODEL"
    )
    assert (run.status, run.reason) == ("failed", "drafts_refused")


def test_what_every_draft_takes_is_counted(make_agent: MakeAgent) -> None:
    trusted = ScriptedModel([answer("Yes.", usage=Usage(10, 5))])
    agent = make_agent(answer("No.", usage=Usage(1, 2)), threads=[prefer("trusted")], models={"trusted": trusted})

    run = agent.run_sync("Write")

    assert run.usage == Usage(11, 7)


@bthread
def wants_twice() -> BThreadBody:
    """Want the same draft twice in a turn, and one when the turn is over."""
    yield sync(wait_for=where(InferenceFinished, draft="d0"))
    yield sync(request=InferenceRequested("other"), block=DraftsSettled)
    yield sync(request=InferenceRequested("other"), otherwise=lambda _: FORGONE)
    yield sync(wait_for=ToolStarted)
    yield sync(request=InferenceRequested("late"), otherwise=lambda _: FORGONE)


def test_a_draft_is_asked_for_once_in_a_turn_and_none_when_it_is_over(make_agent: MakeAgent) -> None:
    agent = make_agent(call("bash", command="ls"), "Other.", "Done.", threads=[wants_twice()])

    run = agent.run_sync("Look around")

    assert [said.draft for said in run.events if isinstance(said, InferenceRequested)] == ["d0", "other", "d0"]
    assert [said.draft for said in run.events if isinstance(said, AnswerCommitted)] == ["d0", "d0"]
    refused = [step.refusals for step in run.steps if step.event == FORGONE]
    assert [str(refusal.because) for refusals in refused for refusal in refusals or ()] == [
        "it was asked for already in this turn",
        "the drafts of this turn have settled",
    ]


def test_a_run_whose_drafts_are_all_refused_ends_as_the_reason_says(make_agent: MakeAgent) -> None:
    @bthread
    def limit() -> BThreadBody:
        yield sync(refuse=AnswerCommitted, because=Ending("limit", "drafts", "No more."), wait_for=RunEnded)

    run = make_agent("Hello.", threads=[limit()]).run_sync("Hi")

    assert (run.status, run.reason, run.text) == ("limit", "drafts", "No more.")


@pytest.mark.anyio
async def test_models_of_other_roles_are_asked_on_any_event_loop(make_agent: MakeAgent) -> None:
    agent = make_agent("No.", threads=[prefer("trusted")], models={"trusted": ScriptedModel(["Yes."])})

    assert (await agent.run("Well?")).text == "Yes."
