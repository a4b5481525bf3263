"""The b-threads of the loop: each keeps one rule, and can be left out.

Every loop needs those of `core`; a preset chooses the others.
"""
