"""The b-threads of the loop: each keeps one rule, and can be left out.

The core, without which there is no loop:

- `session`: one run at a time
- `converse`: prompt, inference, answer, calls, inference, until the model asks for no more
- `choose`: of the drafts of a turn, the first that nobody refuses is committed
- `carry_out`: one call from its proposal to its one answer
- `gate`: every described action is put up for approval

The rules, each a preset's choice:

- `by_constitution`: what is denied is refused, what needs a person waits for one
- `no_start_without_approval`: a tool starts only on exactly the call that was approved
- `only_whole_calls`: flawed calls are answered, and never run
- `order`: one call at a time, answers in source order
- `limits`: turns, failures in a row, empty answers in a row
- `retry`: ask again after a failed inference, a little later each time
- `stopping`: stop and abort
"""

from agent.threads.by_constitution import by_constitution
from agent.threads.carry_out import carry_out
from agent.threads.choose import choose
from agent.threads.converse import converse
from agent.threads.gate import gate
from agent.threads.limits import at_most, empty_answers, too_many_failures
from agent.threads.no_start_without_approval import no_start_without_approval
from agent.threads.only_whole_calls import only_whole_calls
from agent.threads.order import answers_in_source_order, one_at_a_time
from agent.threads.retry import retry
from agent.threads.session import session
from agent.threads.stopping import abort_on_request, stop_on_request

__all__ = [
    "CORE",
    "abort_on_request",
    "answers_in_source_order",
    "at_most",
    "by_constitution",
    "carry_out",
    "choose",
    "converse",
    "empty_answers",
    "gate",
    "no_start_without_approval",
    "one_at_a_time",
    "only_whole_calls",
    "retry",
    "session",
    "stop_on_request",
    "too_many_failures",
]

CORE = (session(), converse(), choose(), gate())
"""The b-threads that every program of the loop begins with; `carry_out` is started for each call."""
