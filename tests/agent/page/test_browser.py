"""Pages in a real browser: what is seen, searched, folded and reached by keyboard, on a desk and on a phone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.log.reading import read_log
from agent.models.scripted import ScriptedModel, Step, answer, call
from agent.page import index_page, render_page
from agent.page.document import document, element, shipped
from agent.page.wording import lasted
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from tests.agent.page.chromium import PROGRAM, Browser, chromium, data_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="needs chromium: install chromium")]

ATTACK = "</script><script>document.title = 'attacked'</script><img src=x onerror=\"document.title = 'attacked'\">"

MARKDOWN = """\
## Once more
Another *folder*, `by` [hand](https://example.com/x):

1. look
2. **delete**

```sh
rm -rf /no
```
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of three turns with two refusals, in which the model tries to be a script."""
    folder = tmp_path_factory.mktemp("run")
    script: list[Step] = [
        answer(ATTACK, call("read_file", path="nothing.txt"), call("bash", command="rm -rf /no/such/folder")),
        answer(MARKDOWN, call("bash", command="rm -rf /no/other/folder")),
        "Done.",
    ]
    with Agent(ScriptedModel(script), workspace_tools(folder), log=folder / "run.jsonl") as agent:
        agent.run_sync("Clean up")
    path = folder / "run.html"
    path.write_text(render_page(read_log(folder / "run.jsonl")))
    return path


@pytest.fixture
def shown(browser: Browser, page: Path) -> Iterator[Browser]:
    """A browser that shows the page; in the end no script has failed, and the policy has refused nothing."""
    browser.complaints.clear()
    browser.show(page.as_uri())
    yield browser
    assert browser.complaints == []


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")
    return found


def test_durations_are_told_as_in_the_terminal(shown: Browser) -> None:
    durations = [340, 999.4, 1000, 8075, 59949, 59951, 125000]

    assert shown.run(f"{durations}.map(lasted)") == [lasted(duration) for duration in durations]


def test_every_step_is_drawn_and_what_a_model_wrote_is_text(shown: Browser, page: Path) -> None:
    assert len(texts(shown, ".row")) == len(read_log(page.with_suffix(".jsonl")).records)
    assert ATTACK in texts(shown, ".agent .markdown")
    assert shown.run("document.title") == "Clean up"


def test_model_answers_are_drawn_as_markdown_and_links_show_their_targets(shown: Browser) -> None:
    drawn = ".agent .markdown "
    found = {tag: texts(shown, drawn + tag) for tag in ("h2", "em", "p code", "ol li", "strong", "pre", "a, img")}

    assert found == {
        "h2": ["Once more"],
        "em": ["folder"],
        "p code": ["by"],
        "ol li": ["look", "delete"],
        "strong": ["delete"],
        "pre": ["sh\nrm -rf /no"],
        "a, img": [],
    }
    assert "hand (https://example.com/x)" in texts(shown, drawn + "p")[1]
    assert all(re.search(r"model \d+ ms", words) for words in texts(shown, ".turn > h2"))
    assert all(re.fullmatch(r"agent\s+\d+ ms", words) for words in texts(shown, ".agent > a"))


def test_the_legend_has_the_marks_that_the_table_has_in_their_colors(shown: Browser) -> None:
    seen = """(selector) => [...new Set([...document.querySelectorAll(selector)].map(
        sign => sign.textContent + sign.className + getComputedStyle(sign).color))]"""

    legend = set(shown.run(f"({seen})('.legend b')"))
    marks = set(shown.run(f"({seen})('.row i')"))

    assert len(legend) == 6
    assert marks <= legend
    assert len(marks) >= 5


def test_the_words_that_a_refusal_rests_on_are_underlined(shown: Browser) -> None:
    assert texts(shown, ".call mark") == ["rm -rf /no/such/folder", "rm -rf /no/other/folder"]


def test_a_search_leaves_the_rows_in_which_it_is_found_and_escape_brings_all_back(shown: Browser) -> None:
    every = len(texts(shown, ".row"))
    shown.press("/")
    for letter in "no/other":
        shown.press(letter)

    found = texts(shown, ".row")
    assert 0 < len(found) < every
    assert any("gate_rejected" in row for row in found)
    assert texts(shown, "[role=status]") == [f"{len(found)} of {every} steps"]

    shown.press("Escape")
    assert len(texts(shown, ".row")) == every


def test_rows_are_filtered_by_b_thread_and_by_kind(shown: Browser) -> None:
    shown.run("[...document.querySelectorAll('.heads button')].find(b => b.textContent === 'by_constitution').click()")
    assert {row.split()[1] for row in texts(shown, ".row")} == {"action_described", "gate_rejected"}

    shown.run("kind.value = 'gate_rejected'; kind.dispatchEvent(new Event('change'))")
    assert {row.split()[1] for row in texts(shown, ".row")} == {"gate_rejected"}


def test_the_next_refusal_is_one_key_away_and_is_shown_with_its_call(shown: Browser) -> None:
    for expected in ("/no/such", "/no/other", "/no/such"):
        shown.press("n")
        assert "gate_rejected" in texts(shown, ".row.current")[0]
        assert any(expected in text for text in texts(shown, ".part.here"))
    shown.press("o")
    assert any("by_constitution refused: " in words for words in texts(shown, ".details li"))


def test_messages_link_to_their_steps_and_steps_to_their_messages(shown: Browser) -> None:
    shown.run("[...document.querySelectorAll('.part.call > a')].at(-1).click()")
    assert "proposed_action" in texts(shown, ".row.current")[0]

    shown.run("document.querySelector('.row.current .number').click()")
    assert texts(shown, ".part.here")[0].startswith("action")


def test_turns_can_be_folded(shown: Browser) -> None:
    assert len(texts(shown, ".turn")) == 3
    every = len(texts(shown, ".row"))

    shown.run("document.querySelector('.turn h2 button').click()")
    assert 0 < len(texts(shown, ".row")) < every
    shown.press("f")
    shown.press("f")
    assert texts(shown, ".row") == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)], ids=["desk", "phone"])
def test_the_names_of_the_lanes_stay_and_nothing_is_wider_than_the_screen(
    browser: Browser, page: Path, width: int, height: int
) -> None:
    browser.show(page.as_uri(), width, height)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    browser.settle()

    top, bottom = browser.run("(r => [r.top, r.bottom])(document.querySelector('.heads').getBoundingClientRect())")
    assert 0 <= top < bottom < height / 2
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_of_ten_thousand_steps_only_those_near_are_drawn(browser: Browser, page: Path, tmp_path: Path) -> None:
    data = data_of(page.read_text())
    rows, parts, times = data["rows"], data["parts"], -(-10_000 // len(data["rows"]))
    data["rows"] = [{**row, "step": k * len(rows) + n} for k in range(times) for n, row in enumerate(rows)]
    data["parts"] = [{**part, "row": k * len(rows) + part["row"]} for k in range(times) for part in parts]
    data["turns"] = [k * len(rows) + turn for k in range(times) for turn in data["turns"]]
    long = tmp_path / "long.html"
    long.write_text(document("Long", element("header"), element("main"), data=data))

    browser.show(long.as_uri())

    assert len(data["rows"]) >= 10_000
    assert browser.run("document.querySelectorAll('*').length") < 10_000
    browser.run(f"go({len(data['rows']) - 5})")
    browser.settle()
    assert browser.run("document.querySelector('.row.current').getBoundingClientRect().top") < 900
    assert browser.run("document.querySelectorAll('*').length") < 10_000


@pytest.mark.parametrize("width", [1440, 390])
def test_the_index_of_runs_leaves_the_rows_in_which_all_words_are(browser: Browser, tmp_path: Path, width: int) -> None:
    told = (("one", ATTACK, "failed"), ("two", "Fix it", "failed"), ("three", "Fix", "stopped"))
    same = {"begun": "2026-11-22T22:00:00", "reason": "answered", "preset": "default", "model": "<b>m</b>"}
    spent = {"cost": None, "turns": 1, "tokens": 9}
    runs = [
        {"id": name, "prompt": prompt, "status": status, "workspace": f"/projects/{name}", **same, **spent}
        for name, prompt, status in told
    ]
    index = tmp_path / "index.html"
    index.write_text(index_page(runs, "/runs"))
    browser.complaints.clear()
    browser.show(index.as_uri(), width, 844)

    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.press("/")
    for letter in "fix FAILED":
        browser.press(letter)

    shown = browser.run(
        "[...document.querySelectorAll('tbody tr')].filter(row => row.offsetHeight).map(row => row.innerText)"
    )
    assert ["two" in row and "1 turn" in row and "9 tokens" in row for row in shown] == [True]
    assert texts(browser, "[role=status]") == ["1 of 3"]
    browser.press("Escape")
    assert texts(browser, "[role=status]") == ["3 of 3"]
    assert ATTACK in texts(browser, "td a")
    assert browser.complaints == []


# Contrast


def luminance(color: str) -> float:
    full = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    channels = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_every_color_of_text_can_be_read_on_every_ground_that_it_stands_on() -> None:
    """At least 4.5 to 1 (WCAG 2.2, success criterion 1.4.3), light and dark."""
    blocks = re.findall(r":root \{(.*?)\}", shipped("page.css"), re.DOTALL)
    schemes = [dict(re.findall(r"--([a-z]+): (#[0-9a-f]+)", block)) for block in blocks]
    text = ("ink", "soft", "request", "hear", "hold", "refuse", "good", "person")
    grounds: dict[str, tuple[str, ...]] = dict.fromkeys(("page", "shade", "here", "glow"), text)
    grounds |= {"added": ("good", "ink"), "removed": ("refuse", "ink")}

    poor = [
        (dark, color, ground, round(contrast(scheme[color], scheme[ground]), 2))
        for dark, scheme in enumerate(schemes)
        for ground, colors in grounds.items()
        for color in colors
        if contrast(scheme[color], scheme[ground]) < 4.5
    ]

    assert len(schemes) == 2
    assert poor == []
