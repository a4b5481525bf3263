"""The log of a run: JSON lines, a header and then one record for each selected event."""

from agent.log.reading import LogError, RecordedRun, read_log
from agent.vocabulary.encoding import to_record

__all__ = ["LogError", "RecordedRun", "read_log", "to_record"]
