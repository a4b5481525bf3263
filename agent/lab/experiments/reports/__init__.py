"""Reports: what an experiment came to, as tables, figures and one page.

- `verified`: with how many states a protocol was model-checked
- `table`: headings and cells, in text, in Markdown and as CSV. `tables`: those of an experiment
- `parquet`: the same rows as Parquet
- `deployments`: the tables of deployments
- `auditing`: other budgets for audits
- `disclosing`: what telling costs
- `luring`: what AgentDojo reports
- `labels`: names in a column. `drawing`: plots as SVG
- `report`: text and page
- `finding`: which of several draws to audit, in closed form and simulated
"""

from agent.lab.experiments.reports.deployments import deployment_table, write_deployments
from agent.lab.experiments.reports.finding import tie
from agent.lab.experiments.reports.parquet import ParquetError, check_parquet, write_parquet
from agent.lab.experiments.reports.report import caption, explanation, hero_figure, html_page, tables_of, text_report
from agent.lab.experiments.reports.table import Table
from agent.lab.experiments.reports.tables import tidy, write_tables
from agent.lab.experiments.reports.verified import Verified, read_verified, shipped_verdicts

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
