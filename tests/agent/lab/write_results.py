"""`make results`: run `docs/results/plan.yaml`, and put its tables and figures where `docs/results.md` shows them.

Give the folder of the experiment. What is there is not run again. Exit code 0 when every episode ran.
"""

import re
import shutil
import sys
from pathlib import Path

from agent.cli import main as bpagent
from agent.lab.reports.plots import which_draw, write_figure

PLAN, PAGE, PLACE = "docs/results/plan.yaml", Path("docs/results.md"), Path("docs/results")
MARK = re.compile(r"(<!-- from results/(?P<name>[a-z_]+\.md) -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)


def filled(page: str, place: Path) -> str:
    """Return a page whose marked parts say what files in `place` say."""
    return MARK.sub(lambda found: f"{found[1]}{(place / found['name']).read_text('utf-8').strip()}{found[3]}", page)


def main(folder: Path) -> int:
    """Run what is missing, and write everything; return the exit code of the experiment."""
    code = bpagent(["experiment", PLAN, "--folder", str(folder)])
    for name in ("figure.svg", "audit_curves.svg", "calibration.svg", "thresholds.json", "data/estimates.csv"):
        shutil.copy(folder / name, PLACE)
    for path in (folder / "tables").iterdir():
        shutil.copy(path, PLACE)
    write_figure(which_draw(), PLACE, "draws")
    (PLACE / "draws.png").unlink()
    PAGE.write_text(filled(PAGE.read_text("utf-8"), PLACE), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
