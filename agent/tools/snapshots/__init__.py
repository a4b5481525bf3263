"""Snapshots of a workspace, what differs between them, and undo. It knows files only: no calls, no events, no runs.

- `objects`: contents by name, in packs of git's format. `trees`: one walk over a workspace
- `store`: the snapshots of one workspace, with lock and limit. `undo`: changes, and taking them back.
  `worktree`: a copy of the workspace as it was
"""
