"""What an option may be: given from Python or as text, nothing is coerced, and a wrong one is told in one sentence."""

from typing import Any

import pytest

from agent import Preset
from agent.presets.preset import OptionError
from agent.presets.shipped import PRESETS
from tests.tables import rows

WRONG_FROM_PYTHON: list[tuple[dict[str, Any], str]] = [
    ({"max_iterations": "5"}, "expected a whole number or none, found '5'"),
    ({"max_iterations": True}, "expected a whole number or none, found True"),
    ({"max_iterations": 3.0}, "expected a whole number or none, found 3.0"),
    ({"max_iterations": 0}, "'max_iterations' must be >= 1: 0"),
    ({"max_iterations": -1}, "'max_iterations' must be >= 1: -1"),
    ({"attempts": None}, "expected a whole number, found None"),
    ({"sequential": "false"}, "expected true or false, found 'false'"),
    ({"sequential": 1}, "expected true or false, found 1"),
    ({"timeout": float("nan")}, "expected a number or none, found nan"),
    ({"timeout": float("inf")}, "expected a number or none, found inf"),
    ({"timeout": 0}, "'timeout' must be > 0: 0"),
    ({"limit_text": 5}, "expected a text, found 5"),
    ({"allowed_paths": "~/work"}, "expected a list of texts, found '~/work'"),
    ({"allow": ["a", 5]}, "expected a list of texts, found ('a', 5)"),
    ({"stop_after": "turn"}, "expected 'call' or 'step', found 'turn'"),
    ({"policy": "defalt"}, "there is no policy 'defalt'; did you mean 'default'?"),
    ({"system_prompt": "{who}"}, "a system prompt may hold {workspace}, {tools},"),
    ({"name": None}, "expected a text, found None"),
]


@rows(("option", "said"), WRONG_FROM_PYTHON)
def test_a_wrong_value_from_python_is_refused(option: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Preset(**{"name": "mine", **option})

    assert said in str(caught.value)


@rows(
    ("name", "text", "value"),
    [
        ("max_iterations", "5", 5),
        ("max_iterations", "none", None),
        ("max_iterations", "None", None),
        ("policy", "none", None),
        ("timeout", "0.5", 0.5),
        ("timeout", "none", None),
        ("sequential", "false", False),
        ("sequential", "TRUE", True),
        ("limit_text", "none", "none"),
        ("allow", "deploy_app,write_file", ("deploy_app", "write_file")),
        ("allow", "", ()),
        ("denied_paths", "none", ()),
        ("allowed_paths", "~/a b,/c", ("~/a b", "/c")),
        ("mode", "cron", "cron"),
        ("shell", "sh -c", "sh -c"),
    ],
)
def test_text_is_read_by_the_type_of_the_option(name: str, text: str, value: object) -> None:
    changed = PRESETS["default"].with_options({name: text})

    assert getattr(changed, name) == value


@rows(
    ("name", "text", "said"),
    [
        ("max_iterations", "many", "option max_iterations='many': expected a whole number"),
        ("max_iterations", "1.5", "expected a whole number"),
        ("max_iterations", "0", "must be >= 1"),
        ("timeout", "soon", "expected a number"),
        ("timeout", "nan", "expected a number or none, found nan"),
        ("timeout", "-1", "must be > 0"),
        ("sequential", "yes", "expected true or false"),
        ("mode", "corn", "option mode='corn': expected 'interactive' or 'cron', found 'corn'"),
        ("attempts", "none", "expected a whole number"),
        ("max_iteration", "1", "there is no option 'max_iteration'; did you mean 'max_iterations'?"),
        ("name", "other", "there is no option 'name'"),
    ],
)
def test_wrong_text_is_told_in_one_sentence(name: str, text: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        PRESETS["default"].with_options({name: text})

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@rows("preset", PRESETS.values())
def test_every_value_of_every_preset_can_be_given_as_text(preset: Preset) -> None:
    """Any mix is legal, and the command line reaches every row."""
    options = {
        name: ",".join(value) if isinstance(value, tuple) else "none" if value is None else str(value)
        for name, value in preset.configuration().items()
        if name != "name"
    }

    from_text = PRESETS["default"].with_options(options)

    assert {**from_text.configuration(), "name": preset.name} == preset.configuration()
