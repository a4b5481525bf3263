"""`docs/results.md` says what `make results` wrote, and nothing was copied by hand."""

from pathlib import Path

from agent.lab.experiments.plan_files import load_plan
from agent.lab.experiments.reports import read_verified
from tests.agent.lab.write_results import MARK, filled

DOCS = Path(__file__).parent.parent.parent.parent / "docs"


def test_the_page_has_the_tables_that_were_written() -> None:
    page = (DOCS / "results.md").read_text(encoding="utf-8")

    names = {found["name"] for found in MARK.finditer(page)}
    assert {
        "overview.md",
        "attacks.md",
        "rungs.md",
        "costs.md",
        "by_setting.md",
        "disclosure.md",
        "budgets.md",
    } <= names
    assert filled(page, DOCS / "results") == page


def test_every_protocol_of_the_plan_was_verified_and_holds() -> None:
    plan = load_plan(DOCS / "results" / "plan.yaml")

    verified = read_verified(DOCS / "results" / "verified.csv")

    assert {"+".join(protocol.use) for protocol in plan.protocols if protocol.use} <= verified.keys()
    assert {found.verdict for found in verified.values()} <= {"holds", "bounded"}


def test_marks_are_filled_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "some.md").write_text("| new |\n")

    page = "before\n\n<!-- from results/some.md -->\n\n| old |\n\n<!-- end -->\n\nafter\n"

    assert filled(page, tmp_path) == page.replace("old", "new")
