"""Reports: what an experiment came to, as tables, figures and one page.

- `verified`: with how many states a protocol was model-checked
- `tables`: tables, in text, in Markdown and as CSV
- `parquet`: the same rows as Parquet
- `deployments`: the tables of deployments
- `auditing`: other budgets for audits
- `disclosing`: what telling costs
- `drawing`: plots as SVG
- `report`: text and page
- `finding`: which of several draws to audit, in closed form and simulated
"""

from agent.lab.experiments.reports.deployments import markdown_of, write_deployments
from agent.lab.experiments.reports.finding import by_least, by_most, tie
from agent.lab.experiments.reports.parquet import ParquetError, check_parquet, write_parquet
from agent.lab.experiments.reports.report import caption, explanation, hero_figure, html_page, tables_of, text_report
from agent.lab.experiments.reports.tables import Table, tidy, write_tables
from agent.lab.experiments.reports.verified import Verified, read_verified

__all__ = [
    "ParquetError",
    "Table",
    "Verified",
    "by_least",
    "by_most",
    "caption",
    "check_parquet",
    "explanation",
    "hero_figure",
    "html_page",
    "markdown_of",
    "read_verified",
    "tables_of",
    "text_report",
    "tidy",
    "tie",
    "write_deployments",
    "write_parquet",
    "write_tables",
]
