"""`agent.tools.names`: a wrong name is answered with those that may have been meant."""

from agent.tools import explain_unknown, nearest

NAMES = ("bash", "read_file", "write_file", "list_directory")


def test_the_nearest_names_come_first() -> None:
    assert nearest("bsh", NAMES) == ("bash",)
    assert nearest("Read_File", NAMES)[0] == "read_file"
    assert nearest("frobnicate", NAMES) == ()


def test_the_answer_to_an_unknown_tool_names_what_there_is() -> None:
    assert explain_unknown("bsh", NAMES) == "unknown tool 'bsh'; nearest: bash"
    assert explain_unknown("xyz", ("bash",)) == "unknown tool 'xyz'; known: bash"
    assert explain_unknown("xyz", ()) == "unknown tool 'xyz'; known: none"
