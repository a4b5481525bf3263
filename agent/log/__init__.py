"""The log of a run: JSON lines, a header and then one record for each selected event.

- `encoding`: events as records
- `reading`: a file back to records, strictly
- `locking`: one writer at a time
- `redacting`: what is to stay out of it
- `writing`: records to a file, before they have effects
- `decoding`: records back to events
- `replaying`: the same program once more, against the record
"""

from typing import TYPE_CHECKING

from agent.log.locking import LogInUse, check_free, is_in_use
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.redacting import Redaction
from agent.log.writing import LogWriter, reopen
from agent.vocabulary.encoding import FORMAT, to_record
from agent.vocabulary.lazy import from_modules

if TYPE_CHECKING:
    from agent.history.playback import Difference, LogDiffers, ReplayResult, broke_off, replay, retaken

__all__ = [
    "FORMAT",
    "Difference",
    "LogDiffers",
    "LogError",
    "LogInUse",
    "LogWriter",
    "RecordedRun",
    "Redaction",
    "ReplayResult",
    "broke_off",
    "check_free",
    "is_in_use",
    "read_log",
    "reopen",
    "replay",
    "retaken",
    "to_record",
]

_REPLAYING = "history.playback"  # it needs cattrs: 20 ms, which writing a log does without
__getattr__ = from_modules(
    "agent",
    dict.fromkeys(("Difference", "LogDiffers", "ReplayResult", "broke_off", "replay", "retaken"), _REPLAYING),
)
