"""A part of what `make adversary` runs: commands that the judge allows, or might, do no harm in a sandbox."""

import pytest

from agent.tools.sandbox.sandbox import Level, why_not
from tests.agent.tools.sandbox.adversary import OWN, broken_by, missed, outside_home, sandbox_of

EVERY = 6


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_nothing_outside_changes_is_read_is_reached_or_ends(level: Level) -> None:
    if why := why_not(level):
        pytest.skip(f"{level}: {why}")
    with outside_home() as outside:
        sandbox = sandbox_of(outside, level)
        got_through = {each: what for each in (*missed(), *OWN)[::EVERY] if (what := broken_by(each, outside, sandbox))}

    assert got_through == {}


def test_the_attacks_are_attacks() -> None:
    """Without a sandbox they get through."""
    with outside_home() as outside:
        tried = ("echo gone > link", "cat keys", "exec 3<>/dev/tcp/$HOST/$PORT", "kill -9 $BYSTANDER")

        assert [broken_by(each, outside, None) for each in tried] == ["changed", "read", "arrived", "ended"]
