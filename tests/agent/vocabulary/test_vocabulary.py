"""JSON becomes values of our own, strictly: the two ways of looking at it agree, and mistakes have a place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import asdict, frozen
from hypothesis import given
from hypothesis import strategies as st

from agent.vocabulary.encoding import dump, parsed, structured
from agent.vocabulary.errors import meant
from agent.vocabulary.messages import (
    NO_CALL,
    NO_RESULT,
    AssistantMessage,
    Message,
    Messages,
    RequestedCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    with_calls_answered,
)
from agent.vocabulary.yaml_nodes import NodeError, read_yaml
from tests.tables import rows


@frozen
class Leaf:
    color: Literal["red", "green"]
    size: float | None = None


@frozen
class Tree:
    name: str
    leaves: tuple[Leaf, ...] = ()
    words: tuple[str, ...] = ()
    weights: Mapping[str, float] = {}


TREE = Tree("elm", (Leaf("red", 2), Leaf("green")), ("a", "b"), {"a": 0.5})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["red", "x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["color", "size", "a"]), inner),
    max_leaves=4,
)


def test_plain_data_become_the_value_that_they_were_made_of() -> None:
    assert structured(asdict(TREE), Tree, "tree") == TREE
    assert parsed('{"name": "elm"}', Tree, "tree") == Tree("elm")


@rows(
    ("text", "told"),
    [
        ("[]", "expected an object, found [] @ tree"),
        ("{}", "nothing is there @ tree.name"),
        ('{"name": 3}', "expected str, found 3 @ tree.name"),
        ('{"name": "", "words": "ab"}', "expected a list, found 'ab' @ tree.words"),
        ('{"name": "", "words": ["a", 3]}', "expected str, found 3 @ tree.words[1]"),
        ('{"name": "", "leaves": [{"color": "blue"}]}', "of 'red', 'green', found 'blue' @ tree.leaves[0].color"),
        ('{"name": "", "leaves": [{"color": ["red"]}]}', "found ['red'] @ tree.leaves[0].color"),
        ('{"name": "", "leaves": [{"color": "red", "size": true}]}', "float, found True @ tree.leaves[0].size"),
        ('{"name": "", "weights": []}', "expected an object @ tree.weights"),
        ('{"name": "", "weights": {"a": "1"}}', "expected float, found '1' @ tree.weights['a']"),
        ('{"name": "", "roots": 3}', "'roots' is not known here @ tree"),
        ('{"name": "", "words": [["' + "x" * 100 + '"]]}', "xxx… @ tree.words[0]"),
        ("{", "line 1 column 2"),
        ("[" * 100_000, "values are nested too deeply @ tree"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        parsed(text, Tree, "tree")

    assert told in str(caught.value)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["name", "leaves", "words", "weights"]), VALUES))
def test_whatever_is_accepted_says_what_it_was_made_of(told: dict[str, Any]) -> None:
    """Of what is refused the thorough look finds what is wrong: an AssertionError says that it does not."""
    try:
        found = structured(told, Tree, "tree")
    except ValueError:
        return

    assert structured(asdict(found), Tree, "tree") == found
    assert (found.name, list(found.words)) == (told["name"], told.get("words", []))
    assert found.weights == told.get("weights", {})


# YAML files of ours are plain values: bombs of aliases, types of other programs and bottomless nesting are errors


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.slow
@rows(
    ("text", "said"),
    [
        (LAUGHS, "more than 16 aliases"),
        ("a: !!python/object/apply:os.system [id]\n", "names a type of its own"),
        ("a: !include /etc/shadow\n", "names a type of its own"),
        ("a: !!binary aGVsbG8=\n", "names a type of its own"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("a: " + "x" * 1_000_001, "a file of ours has 1,000,000 at most"),
    ],
)
def test_an_unsupported_feature_of_yaml_is_a_named_error(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)

    with pytest.raises(NodeError, match=f"^{path}.*{said}"):
        read_yaml(path)


def test_a_few_aliases_and_the_types_of_yaml_are_plain(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: &a [1, 2]\nb: *a\nc: 3\n")

    assert read_yaml(path).value == {"a": [1, 2], "b": [1, 2], "c": 3}


# An unknown name is answered with the one that was meant, or with all


@rows(
    ("name", "known", "told"),
    [
        ("gatd", ["default", "gated"], "did you mean 'gated'?"),
        ("nothing", ["default", "gated"], "there are: default, gated"),
        ("Gated", ["default", "gated"], "did you mean 'gated'?"),
        ("gated", {}, "there are: none"),
    ],
)
def test_an_unknown_name_has_a_cure(name: str, known: list[str], told: str) -> None:
    assert meant(name, known) == told


# The messages of a conversation up to a moment: a view that neither copies nor grows


FIRST, SECOND, THIRD = UserMessage("a"), AssistantMessage("b"), UserMessage("c")


def test_messages_added_later_are_not_in_a_snapshot() -> None:
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


# A record is one line for every reader of text, whatever it holds


@rows("end", ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\ud800", '"\\'])
def test_no_character_ends_the_line_of_a_record(end: str) -> None:
    line = dump({"text": f"é one{end}two", f"key{end}": 1})

    assert len(line.splitlines()) == 1
    assert line.encode()
    assert json.loads(line) == {"text": f"é one{end}two", f"key{end}": 1}


def asks(*calls: str) -> AssistantMessage:
    return AssistantMessage("" if calls else "hm", tuple(RequestedCall(call, "look") for call in calls))


def said(text: str) -> UserMessage:
    return UserMessage(text)


def result(call: str, text: str = "seen") -> ToolMessage:
    return ToolMessage(call, ToolResult(text))


def missing(call: str) -> ToolMessage:
    return ToolMessage(call, ToolResult(NO_RESULT, is_error=True))


OURS = "c0001p001"
ORPHAN = said(f"{NO_CALL}\nseen")


@rows(
    ("given", "mended"),
    [
        ([asks("a")], [asks("a"), missing("a")]),
        ([asks("a", "b"), result("b")], [asks("a", "b"), result("b"), missing("a")]),
        ([asks("a"), said("go on")], [asks("a"), missing("a"), said("go on")]),
        ([asks("a"), said("wait"), result("a")], [asks("a"), result("a"), said("wait")]),
        ([asks("a"), asks("a"), result("a")], [asks("a"), missing("a"), asks("a"), result("a")]),
        ([result("a"), said("go on")], [ORPHAN, said("go on")]),
        ([asks("a"), result("b"), result("a")], [asks("a"), result("a"), ORPHAN]),
        ([asks("a"), result("a", "1"), result("a")], [asks("a"), result("a", "1"), ORPHAN]),
        ([asks(), result("a")], [asks(), ORPHAN]),
        ([said("x"), AssistantMessage()], [said("x")]),
        ([asks("a", "a"), result("a")], [asks("a", OURS), result("a"), missing(OURS)]),
        ([asks("a", "a"), result("a"), result("a", "2")], [asks("a", OURS), result("a"), result(OURS, "2")]),
        ([asks("b", ""), result(""), result("b")], [asks("b", OURS), result(OURS), result("b")]),
        ([asks("b", "a" * 65)], [asks("b", OURS), missing("b"), missing(OURS)]),
        ([], []),
    ],
)
def test_a_conversation_that_broke_off_is_mended(given: list[Message], mended: list[Message]) -> None:
    assert list(with_calls_answered(given)) == mended


MESSAGES = st.lists(
    st.sampled_from([said("x"), asks(), asks("a"), asks("b", "a"), asks("b"), result("a"), result("b"), result("c")]),
    max_size=9,
)


@given(MESSAGES)
def test_in_a_mended_conversation_each_call_has_its_result_at_once_and_nothing_is_lost(messages: list[Message]) -> None:
    mended = with_calls_answered(messages)

    waiting: list[str] = []
    for message in mended:
        if isinstance(message, ToolMessage):
            waiting.remove(message.call_id)
        else:
            assert waiting == []
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.calls]
    assert waiting == []
    assert with_calls_answered(mended) == mended
    kept = [message for message in mended if message not in (missing("a"), missing("b"))]
    assert len(kept) == len(messages)
