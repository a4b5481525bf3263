"""YAML files of ours are plain values: bombs of aliases, types of other programs and bottomless nesting are errors."""

from pathlib import Path

import pytest

from agent.vocabulary.yaml_nodes import NodeError, read_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
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
def test_what_no_file_of_ours_needs_is_a_named_error(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)

    with pytest.raises(NodeError, match=f"^{path}.*{said}"):
        read_yaml(path)


def test_a_few_aliases_and_the_types_of_yaml_are_plain(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: &a [1, 2]\nb: *a\nc: 3\n")

    assert read_yaml(path).value == {"a": [1, 2], "b": [1, 2], "c": 3}
