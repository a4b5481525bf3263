"""The b-threads of the loop: each keeps one rule, and can be left out.

`core` are those without which there is no loop; which of the others a loop has is the choice of a preset.
"""
