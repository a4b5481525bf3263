"""The rules, each with examples that match and near misses, which run as tests.

`places` (zones that rules name together), then by what is at stake: `form`, `destruction`, `control`, `disclosure`,
`loss`.
"""
