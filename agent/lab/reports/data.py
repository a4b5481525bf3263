"""The tables as Parquet, where pyarrow is there: typed columns, also where every value of one is missing."""

from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

from attrs import fields

from agent.lab.episodes.results import Row, Step
from agent.lab.reports.tables import Lines
from agent.vocabulary.errors import AgentError

__all__ = ["ParquetError", "check_parquet", "write_parquet"]


COLUMNS = {str: "string", int: "int64", float: "float64", bool: "bool_"}


class ParquetError(AgentError):
    """Parquet cannot be written here."""


def check_parquet() -> None:
    """Raise ParquetError, which names the cure, where Parquet cannot be written."""
    _imported("pyarrow.parquet")


def write_parquet(folder: Path, episodes: Lines, steps: Lines) -> None:
    """Write `episodes.parquet` and `steps.parquet`. Raises ParquetError, OSError."""
    _write(folder / "episodes.parquet", episodes, _columns(Row))
    _write(folder / "steps.parquet", steps, {"key": "string", "step": "int64", **_columns(Step)})


def _write(path: Path, lines: Lines, columns: dict[str, str]) -> None:
    arrow, parquet = _imported("pyarrow"), _imported("pyarrow.parquet")
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in columns.items()])
    parquet.write_table(arrow.Table.from_pylist(list(lines), schema=schema), path)


def _columns(kind: Any) -> dict[str, str]:
    """Return the columns of a class of rows, with the type of each; its steps are a table of their own."""
    return {field.name: _column(field.type) for field in fields(kind) if field.name != "steps"}


def _column(hint: Any) -> str:
    """Return the type of a column: every other one is a text, such as one of several words."""
    parts = get_args(hint) if get_origin(hint) is not None or get_args(hint) else (hint,)
    return next((COLUMNS[part] for part in parts if part in COLUMNS), "string")


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ParquetError("Parquet needs pyarrow: pip install 'bpagent[parquet]'") from error
