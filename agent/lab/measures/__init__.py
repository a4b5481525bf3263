"""Measures: usefulness, safety and suspicion, as pure functions of scores and outcomes, with confidence intervals.

A budget is always a share of episodes or a share of steps: whose scores a function is given decides which, and no
function mixes the two.

Modules in reading order:

- `thresholds`: the score threshold that spends an audit budget; how well scores separate attacks from honest work
- `safety`: safety and usefulness from outcomes; the Pareto front of protocols
- `intervals`: confidence intervals and tests
"""
