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
- `budget`: tokens in a turn, tokens in total, cost
- `repetition`: `doom_loop`, the same call again and again
- `completion`: autonomous work, from its objective to its completion
- `retries`: `retry`, a little later each time
- `stopping`: stop and abort
- `wishes`: what people say is heard as a wish to stop
- `deadlines`: the time of a run
- `summaries`: a summary in the place of what was said long ago
"""

from agent.threads.approval import gate
from agent.threads.budget import budget_of_cost, budget_of_tokens, budget_per_turn
from agent.threads.calls import carry_out
from agent.threads.completion import complete_to_finish, iterations_at_most, one_objective
from agent.threads.conversation import converse
from agent.threads.deadlines import deadline
from agent.threads.drafts import choose
from agent.threads.flaws import only_whole_calls
from agent.threads.follow_ups import continue_with_follow_ups
from agent.threads.judging import by_constitution
from agent.threads.limits import at_most, empty_answers, too_many_failures
from agent.threads.order import answers_in_source_order, one_at_a_time
from agent.threads.repetition import doom_loop
from agent.threads.retries import retry
from agent.threads.seeking import seek_follow_ups, seek_steering
from agent.threads.sessions import session
from agent.threads.starts import no_start_without_approval
from agent.threads.steering import skip_when_steered
from agent.threads.stopping import abort_on_request, stop_on_request
from agent.threads.summaries import summarize_when_full
from agent.threads.wishes import stop_when_said
from agent.vocabulary.reasons import Disclosure
from bp import BThread

__all__ = [
    "CORE",
    "abort_on_request",
    "answers_in_source_order",
    "at_most",
    "budget_of_cost",
    "budget_of_tokens",
    "budget_per_turn",
    "by_constitution",
    "carry_out",
    "choose",
    "complete_to_finish",
    "continue_with_follow_ups",
    "converse",
    "core",
    "deadline",
    "doom_loop",
    "empty_answers",
    "gate",
    "iterations_at_most",
    "no_start_without_approval",
    "one_at_a_time",
    "one_objective",
    "only_whole_calls",
    "retry",
    "seek_follow_ups",
    "seek_steering",
    "session",
    "skip_when_steered",
    "stop_on_request",
    "stop_when_said",
    "summarize_when_full",
    "too_many_failures",
]


def core(disclosure: Disclosure = "full") -> tuple[BThread, ...]:
    """Return the b-threads that every program of the loop begins with; `carry_out` is started for each call."""
    return (session(), converse(disclosure), choose(), gate())


CORE = core()
"""The core as it is where the model is told why a call was refused."""
