"""Data for other programs: tidy tables of episodes, steps, roles and estimates, as CSV, JSON lines and Parquet.

    pandas.read_parquet("plan.results/data/estimates.parquet")

Every column has one type, also if it is empty; a missing value is an empty cell, or null. Steps and roles have the
column `key` of their episode.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from attrs import asdict, fields, frozen

from agent.lab.deployments.results import DeploymentRow, DeploymentStep
from agent.lab.episodes.results import RoleUsage, Row, Step
from agent.lab.extras import needed
from agent.lab.reports.analysis import Analysis

COLUMNS = {str: "string", int: "int64", float: "float64", bool: "bool_"}
TABLES = ("steps", "roles")
"""Fields of a row that are tables of their own."""

Lines = Sequence[Mapping[str, object]]


@frozen
class EstimateLine:
    """One figure: of a protocol, in a setting or in "all" of them, against a policy where it is about one.

    measure: as `Estimate` names it. budget: the share of honest calls that is audited. low, high: the 95 % interval,
    where there is one. apart: whether the protocol differs from the constitution alone by an exact test, at a level
    corrected for all its comparisons.
    """

    setting: str
    protocol: str
    measure: str
    policy: str
    budget: float
    estimate: float | None
    low: float | None = None
    high: float | None = None
    apart: bool | None = None


def estimate_lines(analyses: Mapping[str, Analysis]) -> Iterator[EstimateLine]:
    """Yield every figure of analyses; these are by setting."""
    for setting, analysis in analyses.items():
        for estimate in analysis.estimates:
            for (measure, policy), figure in estimate.figures.items():
                known = [each if math.isfinite(each) else None for each in (figure.value, figure.low, figure.high)]
                apart = policy in estimate.apart if measure in ("safety", "safety_difference") else None
                line: tuple[Any, ...] = (setting, estimate.protocol, measure, policy, analysis.budget, *known, apart)
                yield EstimateLine(*line)


def tidy(rows: Iterable[Row]) -> dict[str, Lines]:
    """Return the tables of episodes, of their committed calls, and of the usage of each role's model."""
    found: dict[str, list[dict[str, object]]] = {"episodes": [], "steps": [], "roles": []}
    for row in rows:
        line = asdict(row)
        steps, roles = (line.pop(table) for table in TABLES)
        found["episodes"].append(line)
        found["steps"] += [{"key": row.key, "step": number, **step} for number, step in enumerate(steps)]
        found["roles"] += [{"key": row.key, **role} for role in roles]
    return dict(found)


def write_data(
    folder: Path, rows: Iterable[Row], estimates: Iterable[EstimateLine], deployments: Sequence[DeploymentRow] = ()
) -> None:
    """Write all tables to a folder (created if missing), each in three formats. Raises OSError, MissingExtra."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {**tidy(rows), "estimates": [asdict(each) for each in estimates]}
    if deployments:
        plain = [{**asdict(row), "disabled": " ".join(row.disabled)} for row in deployments]
        steps = [{"deployment_key": row["key"], **step} for row in plain for step in row.pop("steps")]
        tables |= {"deployments": plain, "deployment_episodes": steps}
    for name, lines in tables.items():
        _write(folder, name, lines)


def _write(folder: Path, name: str, lines: Lines) -> None:
    arrow = needed("pyarrow")
    schema = arrow.schema([(column, getattr(arrow, kind)()) for column, kind in SCHEMAS[name].items()])
    table = arrow.Table.from_pylist(list(lines), schema=schema)
    needed("pyarrow.csv").write_csv(table, folder / f"{name}.csv")
    needed("pyarrow.parquet").write_table(table, folder / f"{name}.parquet")
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _columns(kind: Any) -> dict[str, str]:
    """Return the columns of a class of rows with their types, without fields that are tables."""
    return {field.name: _column(field.type) for field in fields(kind) if field.name not in TABLES}


def _column(hint: Any) -> str:
    """Return the type of a column: text unless it is a number or a truth value."""
    parts = get_args(hint) if get_origin(hint) is not None or get_args(hint) else (hint,)
    return next((COLUMNS[part] for part in parts if part in COLUMNS), "string")


SCHEMAS = {
    "episodes": _columns(Row),
    "steps": {"key": "string", "step": "int64", **_columns(Step)},
    "roles": {"key": "string", **_columns(RoleUsage)},
    "estimates": _columns(EstimateLine),
    "deployments": {**_columns(DeploymentRow), "disabled": "string"},
    "deployment_episodes": {"deployment_key": "string", **_columns(DeploymentStep)},
}
"""The columns of each table, with their types."""
