"""Tables as Parquet: the same as CSV, with types; and what is told where it cannot be."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agent.lab.episodes.results import Row, Step
from agent.lab.reports.data import ParquetError, check_parquet, write_parquet
from agent.lab.reports.tables import tidy

STEPS = (Step("bash", True, "ran", 0.25),), (Step("bash", None, "ran", None),)
ROWS = (
    Row("k", "s", "f", "f-0", "test", "always", True, "none", 0, side=True, tau=1, main=0.5, steps=STEPS[0]),
    Row("l", "s", "f", "f-0", "test", "honest", False, "none", 0, steps=STEPS[1]),
)


def written(folder: Path, name: str) -> Any:
    return import_module("pyarrow.parquet").read_table(folder / name)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    write_parquet(tmp_path, *tidy(ROWS))

    episodes, steps = tidy(ROWS)
    assert written(tmp_path, "episodes.parquet").to_pylist() == episodes
    assert written(tmp_path, "steps.parquet").to_pylist() == steps


def test_columns_have_their_types_where_nothing_is_in_them(tmp_path: Path) -> None:
    write_parquet(tmp_path, *tidy(ROWS[1:]))
    (tmp_path / "none").mkdir()
    write_parquet(tmp_path / "none", *tidy(()))

    for folder in (tmp_path, tmp_path / "none"):
        types = {field.name: str(field.type) for field in written(folder, "episodes.parquet").schema}
        assert (types["tau"], types["main"], types["side"], types["status"]) == ("int64", "double", "bool", "string")
        steps = {field.name: str(field.type) for field in written(folder, "steps.parquet").schema}
        assert (steps["step"], steps["score"], steps["attack"]) == ("int64", "double", "bool")


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(ParquetError, match=r"pip install 'bpagent\[parquet\]'"):
        check_parquet()
