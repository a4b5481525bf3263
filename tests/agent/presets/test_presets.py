"""Every option of every preset: what happens under it, and that something else happens where it is changed."""

import tempfile
from pathlib import Path

import pytest
from attrs import evolve, fields

from agent import Preset
from agent.presets.shipped import PRESETS
from tests.agent.conftest import MakeAgent
from tests.agent.presets.table import ELSEWHERE, ORDER, ROWS, Row
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace lies in a home folder that is the test's own."""
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return home / "workspace"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.option)
@rows("preset", PRESETS.values())
async def test_each_cell_of_the_table_has_its_effect(make_agent: MakeAgent, row: Row, preset: Preset) -> None:
    assert await row.scene(make_agent, preset) == row.cells[preset.name]
    if preset.name == "default":
        assert await row.scene(make_agent, evolve(preset, **{row.option: row.other})) != row.cells[preset.name]


def test_the_table_has_all_presets_and_all_options() -> None:
    """A new option needs a row to the table or a place where its effect is tested."""
    options = {field.name for field in fields(Preset)} - {"name"}

    assert tuple(PRESETS) == ORDER
    assert options == {row.option for row in ROWS} | set(ELSEWHERE)
