"""Reports: what an experiment came to, as tables, figures and one page.

- `tables`: the tables of an experiment, in text, in Markdown and as CSV. `parquet`: the same rows as Parquet
- `drawing`: plots as SVG
- `report`: text and page
- `finding`: which of several draws to audit, in closed form and simulated
"""

from agent.lab.experiments.reports.finding import tie
from agent.lab.experiments.reports.parquet import ParquetError, check_parquet, write_parquet
from agent.lab.experiments.reports.report import caption, explanation, hero_figure, html_page, tables_of, text_report
from agent.lab.experiments.reports.tables import (
    Table,
    Verified,
    deployment_table,
    read_verified,
    shipped_verdicts,
    tidy,
    write_deployments,
    write_tables,
)

__all__ = [
    "ParquetError",
    "Table",
    "Verified",
    "caption",
    "check_parquet",
    "deployment_table",
    "explanation",
    "hero_figure",
    "html_page",
    "read_verified",
    "shipped_verdicts",
    "tables_of",
    "text_report",
    "tidy",
    "tie",
    "write_deployments",
    "write_parquet",
    "write_tables",
]
