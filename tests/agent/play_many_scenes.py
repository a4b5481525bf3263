"""`make laws`: ten thousand random runs, or as many as are asked for, each checked as the laws of the tests say.

python -m tests.agent.play_many_scenes 50000
"""

import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.agent.session.test_laws import SCENES, Scene, check

CASES = 10_000


def main() -> int:
    """Play the scenes, the backends in turn; return 0, or fail with the smallest scene that breaks a law."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    backends = ("asyncio", "trio")
    played = 0

    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(scene=SCENES)
    def play(scene: Scene) -> None:
        nonlocal played
        log = Path(folder) / "run.jsonl"
        log.unlink(missing_ok=True)
        check(scene, log, backends[played % 2])
        played += 1

    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        play()
    print(f"{played:,} runs are sound, in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
