"""Recorded runs judged again: under another constitution, with other protocols, or without one of the b-threads.

What the log says of the world is taken as it was: what the model proposed, what was found on disk, what tools gave and
people answered. Nothing is looked up or asked today. That holds until a decision changes what the model would have been
told next; from there on the recording is of another conversation.

- `decisions`: what became of each call, from a log or from a program
- `policy_files`: a policy as a YAML file
- `programs`: a log's b-threads, some of them exchanged
- `rejudging`: the recording on those b-threads: what changes, and where it stops being valid
- `causes`: who decided about one call, and what would have had to differ
"""

from agent.history.decisions import Decision, Kind
from agent.history.programs import changed_bthreads
from agent.history.what_if import Divergence, Recording, Rejudged, WhatIf, recorded_decisions, what_if
from agent.history.why import Cause, Objection, find_causes
from agent.presets.policy_files import PolicyError, load_policy

__all__ = [
    "Cause",
    "Decision",
    "Divergence",
    "Kind",
    "Objection",
    "PolicyError",
    "Recording",
    "Rejudged",
    "WhatIf",
    "changed_bthreads",
    "find_causes",
    "load_policy",
    "recorded_decisions",
    "what_if",
]
