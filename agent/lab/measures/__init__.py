"""Measures: usefulness, safety and suspicion, as pure functions of scores and outcomes, with confidence intervals.

A budget is always a share of episodes or a share of steps: whose scores a function is given decides which, and no
function mixes the two.
"""
