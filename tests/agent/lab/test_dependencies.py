"""The digest of what a result depends on: equal where nothing that counts has changed, and only there."""

import functools
import logging
import os
import re
import subprocess
import sys
import threading
from abc import ABC
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy
from attrs import define, field

from agent.lab.dependencies import digest_of
from agent.lab.settings.catalogue import SETTINGS
from agent.models.openai_model import OpenAIModel
from agent.protocols import PROTOCOLS
from agent.protocols.monitors import KeywordMonitor, PromptedMonitor, SimulatedMonitor
from agent.vocabulary.importing import module_at


@define
class Kept:
    """An object of the user's."""

    value: object
    own: object = field(default=None, repr=False)

    def score(self, more: int = 0) -> object:
        return self.value


class Plain:
    """An object without attrs."""

    weight = 1

    def __init__(self, value: object) -> None:
        self.value = value

    def score(self) -> object:
        return LIMITS["most"], self.value


LIMITS = {"most": 3}


def closure(value: object) -> Callable[[], object]:
    return lambda: value


def with_default(value: object) -> Callable[..., object]:
    def function(given: object = value, *, named: object = value) -> object:
        return given, named

    return function


def itself(value: object) -> list[object]:
    found: list[object] = [value]
    found.append(found)
    return found


def cached(value: object) -> Any:
    return functools.lru_cache(closure(value))


def model(value: object) -> PromptedMonitor:
    return PromptedMonitor(OpenAIModel("m", base_url="http://127.0.0.1:1/v1", settings={"temperature": value}))


MAKE: list[Callable[[Any], object]] = [
    str, float, repr, closure, with_default, itself, cached, Kept, Plain, model,
    lambda value: (1, value),
    lambda value: {"a": value, "b": 1},
    lambda value: {value, "b"},
    lambda value: Kept(Kept(value)).score,
    lambda value: functools.partial(Kept.score, more=value),
    lambda value: functools.partial(closure(value)),
    lambda value: numpy.arange(3) + value,
    lambda value: numpy.float64(value),
    lambda value: re.compile(f"a{value}"),
    lambda value: SimpleNamespace(value=value),
    lambda value: KeywordMonitor({"word": value}),
    lambda value: SimulatedMonitor(closure(value)),  # type: ignore[arg-type]
    lambda value: (lambda: lambda: 1) if value == 1 else (lambda: lambda: 2),
    lambda value: type("Made", (), {"weight": value}),
    lambda value: OpenAIModel("m", base_url=f"http://127.0.0.1:{value}/v1"),
]  # fmt: skip


def test_values_are_equal_by_content_and_differ_where_anything_in_them_does() -> None:
    pairs = [(make, digest_of(make(1)), digest_of(make(1)), digest_of(make(2))) for make in MAKE]

    assert not [make for make, one, same, other in pairs if one != same or one == other]


def test_what_is_read_from_the_module_counts_also_when_it_was_changed_in_memory() -> None:
    monitor, before = Plain(1), digest_of(Plain(1))
    LIMITS["most"] = 4
    limited = digest_of(monitor)
    LIMITS["most"] = 3
    assert digest_of(monitor) == before != limited

    Plain.weight = 2
    weighed = digest_of(monitor)
    Plain.weight = 1
    assert digest_of(monitor) == before != weighed


def test_keys_timeouts_and_order_in_sets_make_no_difference() -> None:
    made = [OpenAIModel("m", base_url="http://a/v1", api_key=key, timeout=1.0 + len(key)) for key in ("", "sk-other")]

    assert digest_of(made[0]) == digest_of(made[1])
    assert digest_of({"a", "b", "c"}) == digest_of({"c", "b", "a"})


def test_what_cannot_be_known_is_new_each_time() -> None:
    with Path(os.devnull).open() as file:
        unknown = [threading.Lock(), file, iter(Path().glob("*")), closure(threading.Lock()), Kept({"a": [file]})]
        assert not [each for each in unknown if digest_of(each) == digest_of(each)]

    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert digest_of(deep) != digest_of(deep)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Colour(Enum):
    red = 1


class Writing(ABC):  # noqa: B024
    @functools.cached_property
    def out(self) -> str:
        sys.stdout.write(f"{sys.argv} {LOG}")
        return ""


LOG = logging.getLogger(__name__)


def test_usual_objects_and_all_that_ships_are_known() -> None:
    parts: list[Any] = [Slotted(1), Slotted, Colour.red, Writing(), sys, LOG]
    parts += [*PROTOCOLS, *SETTINGS.values(), *(each.tasks()[0] for each in SETTINGS.values())]

    assert not [each for each in parts if digest_of(each) != digest_of(each)]


FILES = {
    "top_of_digest.py": """
        import json
        from pathlib import Path
        from near_digest import helped
        WORDS = json.loads(Path(__file__).with_name('words.json').read_text())
        def check():
            from package_of_digest.later import late
            return helped(), late(), WORDS
        """,
    "near_digest.py": "import far_digest as far\ndef helped():\n    return far.LIMIT\n",
    "far_digest.py": "LIMIT = 1\n",
    "words.json": '["one"]',
    "package_of_digest/__init__.py": "",
    "package_of_digest/later.py": "from . import deeper\ndef late():\n    return deeper.VALUE\n",
    "package_of_digest/deeper.py": "VALUE = 1\n",
    "unused.py": "VALUE = 1\n",
}
PRINTED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from agent.lab.dependencies import digest_of
from agent.vocabulary.importing import module_at
print(digest_of(module_at("top_of_digest.py").check))
"""


def printed(folder: Path, seed: str = "0") -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRINTED], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_code_depends_on_the_users_files_that_it_imports_and_on_no_others(tmp_path: Path) -> None:
    def digest() -> str:
        return digest_of(module_at(str(tmp_path / "top_of_digest.py")))

    (tmp_path / "package_of_digest").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(dedent(text))
    seen = {"": digest()}
    for name in FILES:
        if name.endswith(".py"):
            (tmp_path / name).write_text(f"{dedent(FILES[name])}# changed\n")
            seen[name] = digest()

    assert seen.pop("unused.py") == list(seen.values())[-1]
    assert len(set(seen.values())) == len(seen)

    named_as_in_python, digests = tmp_path / "queue.py", set[str]()
    for limit in (10, 200):
        named_as_in_python.write_text(f"class Own:\n    limit = {limit}\n")
        digests.add(digest_of(module_at(str(named_as_in_python)).Own()))
    assert len(digests) == 2


def test_digests_are_the_same_in_every_process_and_see_what_the_module_has_read(tmp_path: Path) -> None:
    (tmp_path / "package_of_digest").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(dedent(text))
    first, second = printed(tmp_path), printed(tmp_path, "1")
    (tmp_path / "words.json").write_text('["two"]')

    assert first == second != printed(tmp_path)
