import pytest

from constitution import POLICIES, Evidence, Level, Verdict, judge_command


def test_levels_are_ordered_and_max_takes_the_stricter() -> None:
    assert Level.allow < Level.ask < Level.deny
    assert max(Level.deny, Level.allow, Level.ask) is Level.deny
    assert min(Level.deny, Level.ask) is Level.ask


@pytest.mark.parametrize("word", ["allow", "ask", "deny"])
def test_a_level_is_its_word(word: str) -> None:
    level = Level(word)

    assert level.name == level.value == level == word
    assert f"{level}" == word


def test_a_verdict_reads_as_a_sentence() -> None:
    verdict = Verdict(Level.deny, "delete_outside_workspace", "destruction", (), "rm would delete / recursively")

    assert str(verdict) == "deny: delete_outside_workspace: rm would delete / recursively"


def test_verdicts_are_hashable_values() -> None:
    one = Verdict(Level.ask, "x", "y", (Evidence("rm x", 0, 4, ("rm", "x")),), "z")
    two = Verdict(Level.ask, "x", "y", (Evidence("rm x", 0, 4, ("rm", "x")),), "z")

    assert one == two
    assert len({one, two}) == 1


def test_the_strictest_of_no_verdicts_allows() -> None:
    assert Verdict.strictest([]).allowed
    assert Verdict.strictest([Verdict.allow(), Verdict(Level.ask), Verdict(Level.deny)]).level is Level.deny


def test_a_verdict_names_program_subcommand_object_and_place() -> None:
    said = {
        "make deploy": "make deploy would publish or deploy something",
        "git -C x reset --hard": "git reset would discard uncommitted work",
        "rm -r ~/x": "rm would delete /home/me/x recursively",
    }

    assert {command: judge_command(command, "/ws", home="/home/me").explanation for command in said} == said


def test_a_question_lists_all_its_reasons() -> None:
    verdict = judge_command("git push; rm ~/x", "/ws", home="/home/me")

    assert verdict.reasons == ("git push would send commits to the remote", "rm would delete /home/me/x")


def test_the_name_of_a_file_is_no_verb() -> None:
    assert judge_command("gpg --verify release.sig", "/ws").allowed


def test_a_policy_shows_its_name() -> None:
    assert [repr(policy) for policy in POLICIES.values()] == list(POLICIES)
