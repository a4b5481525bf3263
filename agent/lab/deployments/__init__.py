"""Deployments: sequences of episodes, as a second behavioral program whose events are episodes.

The same model does many tasks, one after the other. A few audits may follow any of them, and a finding may end the
trust in the model. Each such rule is a b-thread.
"""
