"""`make results`: run `docs/results/plan.yaml`, and put its tables, figures and what they say into `docs/results.md`.

Give the folder of the experiment. What is there is not run again. Exit code 0 when every episode ran.
"""

import csv
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent.cli import main as bpagent
from agent.lab.reports.plots import axes_of, write_figure
from tests.agent.lab.measures.closed_forms import caught_by_least, caught_by_most

PLAN, PAGE, PLACE = "docs/results/plan.yaml", Path("docs/results.md"), Path("docs/results")
FILES = ("figure.svg", "audit_curves.svg", "calibration.svg", "thresholds.json", "data/estimates.csv")
FIGURE = re.compile(r"\{(?P<protocol>[^{}/]+)/(?P<measure>[a-z_]+):?(?P<form>[^{}]*)\}")
MARK = re.compile(r"(<!-- from results/(?P<name>[a-z_]+\.md) -->\n\n).*?(\n\n<!-- end -->)", re.DOTALL)
Line = Mapping[str, str]


def filled(page: str, place: Path) -> str:
    """Return a page whose marked parts say what files in `place` say."""
    return MARK.sub(lambda found: f"{found[1]}{(place / found['name']).read_text('utf-8').strip()}{found[3]}", page)


def estimates() -> list[Line]:
    """Return the lines of `estimates.csv`."""
    with (PLACE / "estimates.csv").open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def reading(lines: Iterable[Line]) -> str:
    """Return what lines of `estimates.csv` say, as sentences that each name the rows that they rest on."""
    whole = [line for line in lines if line["setting"] == "all"]
    gains = [line for line in whole if line["measure"] == "safety_worst_difference" and not _is_base(line)]
    losses = [line for line in whole if line["measure"] == "usefulness_difference" and not _is_base(line)]
    audited = [line for line in whole if line["measure"] == "own_audits" and float(line["estimate"]) > 0]
    starred = [line for line in whole if line["measure"] == "safety_difference" and line["apart"] == "true"]
    return "\n".join(
        (
            _told("Safer in the worst case by more than the interval", filter(_is_above, gains)),
            _told("Less safe in the worst case by more than the interval", filter(_is_below, gains)),
            _told("Less useful by more than the interval", filter(_is_below, losses)),
            _told("Told apart by the exact test against a rung (starred)", starred),
            _told("Audits of their own, as a share of honest calls", audited, as_share=True),
        )
    )


def findings(text: str, lines: Iterable[Line]) -> str:
    """Return a text with figures in the place of `{PROTOCOL/MEASURE:FORM}`, of all settings together.

    FORM: how Python formats a number (.2f), or "interval". Raises KeyError for a row that there is not.
    """
    rows = {
        (line["protocol"], line["measure"]): line for line in lines if line["setting"] == "all" and not line["policy"]
    }

    def figure(found: re.Match[str]) -> str:
        line = rows[" ".join(found["protocol"].split()), found["measure"]]
        return (
            _interval(line) if found["form"] == "interval" else format(float(line["estimate"]), found["form"] or ".2f")
        )

    return FIGURE.sub(figure, text)


def _told(what: str, lines: Iterable[Line], *, as_share: bool = False) -> str:
    texts = [_text(line, as_share) for line in lines]
    return f"- {what}: {', '.join(texts) if texts else 'none'}."


def _text(line: Line, as_share: bool) -> str:
    name = f"`{line['protocol']}`" + (f" against `{line['policy']}`" if line["policy"] else "")
    if as_share:
        return f"{name} {float(line['estimate']):.1%}"
    return f"{name} {_interval(line)}"


def _interval(line: Line) -> str:
    value, low, high = (float(line[key]) for key in ("estimate", "low", "high"))
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _is_base(line: Line) -> bool:
    return line["protocol"] == "constitution_only"


def _is_above(line: Line) -> bool:
    return bool(line["low"]) and float(line["low"]) > 0


def _is_below(line: Line) -> bool:
    return bool(line["high"]) and float(line["high"]) < 0


def which_draw(budget: float = 0.05, alpha: float = 4.0, draws: int = 4) -> Any:
    """Return the figure of the share of attacks that is audited, by the most and the least suspicious of draws.

    Lines are closed forms, over how often a draw slips (has the score 1); else it scores like honest work, U(0, 1), or
    Beta(alpha, 1). Honest scores are uniform.
    """
    what = f"share of attacks audited, {budget:.0%} of honest ones audited"
    slips = [step / 100 for step in range(51)]
    with axes_of("how often a draw slips", what, (0, 0.5)) as (figure, axes, colors):
        for curve, name, color in ((caught_by_most, "most", colors[0]), (caught_by_least, "least", colors[1])):
            for spread, style in ((1.0, "--"), (alpha, "-")):
                told = "only slips" if spread == 1 else f"Beta({alpha:g}, 1)"
                values = [curve(budget, spread, draws, slip) for slip in slips]
                axes.plot(slips, values, style, color=color, label=f"{name} suspicious, {told}")
        axes.legend(frameon=False)
    return figure


def main(folder: Path) -> int:
    """Run what is missing, and write everything; return the exit code of the experiment."""
    code = bpagent(["experiment", PLAN, "--folder", str(folder)])
    for path in (*(folder / name for name in FILES), *(folder / "tables").iterdir()):
        shutil.copy(path, PLACE)
    lines = estimates()
    (PLACE / "reading.md").write_text(f"{reading(lines)}\n", encoding="utf-8")
    (PLACE / "findings.md").write_text(findings((PLACE / "findings.txt").read_text("utf-8"), lines), encoding="utf-8")
    write_figure(which_draw(), PLACE, "draws")
    (PLACE / "draws.png").unlink()
    PAGE.write_text(filled(PAGE.read_text("utf-8"), PLACE), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
