"""Reasons of refusals in words, from a log."""

from attrs import asdict

from agent.page.wording import call_line, reason_of
from agent.protocols.asking import suspicion
from tests.tables import rows


def test_a_protocol_says_on_the_page_what_it_said_in_the_run() -> None:
    because = suspicion("watcher", 0.927, 0.9)

    assert reason_of(asdict(because)) == str(because) == "watcher gives 0.93, and 0.90 is allowed"


def test_a_foreign_reason_is_shown_as_it_is() -> None:
    assert reason_of({"left": 3}) == '{"left": 3}'


def test_a_command_in_the_background_says_so() -> None:
    stays = {"tool": "bash", "arguments": {"command": "make serve", "background": True}}

    assert call_line(stays) == "make serve (in the background)"
    assert call_line({"tool": "bash", "arguments": {"command": "make"}}) == "make"


@rows(
    ("answer", "said"),
    [
        ({"text": "keep my notes"}, "the user said no (keep my notes)"),
        ({"text": ""}, "the user said no"),
        ({"text": "", "present": False}, "no person present"),
    ],
)
def test_the_answer_of_the_user_is_set_apart_from_the_question(answer: dict[str, object], said: str) -> None:
    verdict = {"level": "ask", "rule": "lose_work", "explanation": "rm would delete notes.txt"}

    assert reason_of({"verdict": verdict, **answer}) == f"{said}: rm would delete notes.txt (rule lose_work)"
