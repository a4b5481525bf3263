"""The b-threads of the loop: each keeps one rule, and can be left out.

The core, without which there is no loop:

- `sessions`: `session`, one run at a time
- `calls`: `carry_out`, one call from its proposal to its one answer
- `conversation`: `converse`, from inference to inference until the model asks for no more
- `drafts`: `choose`, which commits the first draft of a turn that nobody refuses
- `approval`: `gate`, where every described action is put up

The rules, each a preset's choice:

- `judging`: `by_constitution`; what is denied is refused, what needs a person waits for one
- `starts`: `no_start_without_approval`, on exactly the call that was approved
- `flaws`: `only_whole_calls`; the others are answered, and never run
- `order`: one call at a time, or those together that may; answers in source order
- `steering`: `skip_when_steered`; what a person says meanwhile is heard before anything else begins
- `follow_ups`: `continue_with_follow_ups`; what a person wants next is heard before the run completes
- `seeking`: `seek_steering`, `seek_follow_ups`; whoever speaks for people is asked
- `limits`: turns, failures in a row, empty answers in a row
- `retries`: `retry`, a little later each time
- `stopping`: stop and abort
"""

from agent.threads.approval import gate
from agent.threads.calls import carry_out
from agent.threads.conversation import converse
from agent.threads.drafts import choose
from agent.threads.flaws import only_whole_calls
from agent.threads.follow_ups import continue_with_follow_ups
from agent.threads.judging import by_constitution
from agent.threads.limits import at_most, empty_answers, too_many_failures
from agent.threads.order import answers_in_source_order, one_at_a_time
from agent.threads.retries import retry
from agent.threads.seeking import seek_follow_ups, seek_steering
from agent.threads.sessions import session
from agent.threads.starts import no_start_without_approval
from agent.threads.steering import skip_when_steered
from agent.threads.stopping import abort_on_request, stop_on_request

__all__ = [
    "CORE",
    "abort_on_request",
    "answers_in_source_order",
    "at_most",
    "by_constitution",
    "carry_out",
    "choose",
    "continue_with_follow_ups",
    "converse",
    "empty_answers",
    "gate",
    "no_start_without_approval",
    "one_at_a_time",
    "only_whole_calls",
    "retry",
    "seek_follow_ups",
    "seek_steering",
    "session",
    "skip_when_steered",
    "stop_on_request",
    "too_many_failures",
]

CORE = (session(), converse(), choose(), gate())
"""The b-threads that every program of the loop begins with; `carry_out` is started for each call."""
