"""A record is one line for every reader of text, whatever it holds."""

import json

import pytest

from agent.vocabulary.encoding import dump


@pytest.mark.parametrize("end", ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_no_character_ends_the_line_of_a_record(end: str) -> None:
    line = dump({"text": f"é one{end}two", f"key{end}": 1})

    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"text": f"é one{end}two", f"key{end}": 1}
