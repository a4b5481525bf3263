"""Temporal policies: rules over several calls, in one line of Python or of YAML, for people who know no b-threads.

    only_after("read_customer", "authenticate")       precedence
    never("send_email", after="read_customer")        absence after
    no_more_than(2, "refund")                         bounded existence
    eventually("run_tests", after="edit_file")        response, before the run may end

Each refuses what it forbids; with `otherwise="ask"` a person decides, with `otherwise="stop"` the run ends.

- `matching`: which actions are meant: tools, arguments, effects, zones
- `scopes`: when a policy holds: in a run, in the conversation, between two actions, from one until another
- `patterns`: what each kind of policy remembers, and what it forbids
- `policing`: the b-thread, and the four factories
- `reading`: policies in YAML
"""

from agent.protocols.policies.matching import Condition, Match, action
from agent.protocols.policies.policing import eventually, never, no_more_than, only_after, police
from agent.protocols.policies.reading import PolicyError, read_policies
from agent.protocols.policies.scopes import CONVERSATION, RUN, Scope, between, since

__all__ = [
    "CONVERSATION",
    "RUN",
    "Condition",
    "Match",
    "PolicyError",
    "Scope",
    "action",
    "between",
    "eventually",
    "never",
    "no_more_than",
    "only_after",
    "police",
    "read_policies",
    "since",
]
