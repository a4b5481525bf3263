"""The laboratory: how safe and how useful an agent stays under a protocol when its model may be trying to do harm.

A protocol is a b-thread over drafts, calls and scores; to compose protocols is to have all of them.

- `events`: what can happen in the laboratory besides what happens in any run
- `measures/`: what is measured, as pure functions of scores and outcomes
- `settings/`: tasks, side tasks, and policies that pursue them
"""
