"""The laboratory: how safe and how useful an agent stays under a protocol, when its model may be trying to do harm.

Packages in reading order:

- `measures/`: what is measured, as pure functions of scores and outcomes
"""
