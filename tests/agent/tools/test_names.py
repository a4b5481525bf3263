"""`agent.tools.toolbox`: a call of a tool that is not there is answered with those that may have been meant."""

from agent.tools.toolbox import explain_unknown


def test_the_answer_to_an_unknown_tool_names_what_there_is() -> None:
    names = ("bash", "read_file", "write_file", "list_directory")

    assert explain_unknown("bsh", names) == "unknown tool 'bsh'; nearest: bash"
    assert explain_unknown("xyz", ("bash",)) == "unknown tool 'xyz'; known: bash"
    assert explain_unknown("xyz", ()) == "unknown tool 'xyz'; known: none"
