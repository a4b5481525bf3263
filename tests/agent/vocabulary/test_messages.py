"""The messages of a conversation up to a moment: a view that neither copies nor grows."""

import pytest

from agent.vocabulary.messages import AssistantMessage, Message, Messages, UserMessage

FIRST, SECOND, THIRD = UserMessage("a"), AssistantMessage("b"), UserMessage("c")


def test_what_is_said_later_is_not_in_it() -> None:
    said: list[Message] = [FIRST, SECOND]
    messages = Messages(said)

    said.append(THIRD)

    assert messages == (FIRST, SECOND)
    assert list(messages) == [FIRST, SECOND]
    assert len(messages) == 2
    assert messages[-1] == SECOND
    assert messages[1:] == (SECOND,)
    assert THIRD not in messages
    with pytest.raises(IndexError):
        messages[2]


def test_two_are_equal_when_they_say_the_same() -> None:
    assert Messages([FIRST]) == Messages([FIRST])
    assert hash(Messages([FIRST])) == hash(Messages([FIRST]))
    assert Messages([FIRST]) != Messages([SECOND])
    assert Messages([FIRST]) != 5
    assert repr(Messages([FIRST])) == repr((FIRST,))
