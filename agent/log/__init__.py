"""The log of a run: JSON lines, a header and then one record for each selected event.

- `encoding`: events as records
- `reading`: a file back to records, strictly
- `writing`: records to a file, before they have effects
- `decoding`: records back to events
- `replaying`: the same program once more, against the record
"""

from typing import TYPE_CHECKING

from agent.lazy import from_modules
from agent.log.encoding import FORMAT, to_record
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.writing import LogWriter

if TYPE_CHECKING:
    from agent.log.replaying import Difference, ReplayResult, replay

__all__ = [
    "FORMAT",
    "Difference",
    "LogError",
    "LogWriter",
    "RecordedRun",
    "ReplayResult",
    "read_log",
    "replay",
    "to_record",
]

_REPLAYING = "replaying"  # it needs cattrs: 20 ms, which writing a log does without
__getattr__ = from_modules("agent.log", {"Difference": _REPLAYING, "ReplayResult": _REPLAYING, "replay": _REPLAYING})
