"""Sidecars: what monitors and auditors say of a finished log, in a file beside it; the log itself is never touched.

- `finished_log`: a log whose runs have ended: its calls, each with what a monitor would have been shown
- `sidecar`: the file, a line for each fact, with which monitor said so; another log's, or a changed one's, is refused
- `scoring`: monitors asked about the calls of logs, once for each fact; the most suspicious logs audited
"""
