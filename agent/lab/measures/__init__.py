"""Measures: usefulness, safety and suspicion, as pure functions of scores and outcomes, and how sure they are.

A budget is always a share of episodes or a share of steps: whose scores a function is given decides which, and no
function mixes the two.

Modules in reading order:

- `thresholds`: which honest subjects an audit budget pays for
- `safety`: how safe and how useful, from outcomes; which protocols no other one beats in both
- `curves`: safety at every budget; how well scores tell attacks from honest work
- `intervals`: how sure a figure is
"""
