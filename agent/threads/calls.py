"""One call from its proposal to its one answer, whatever happens on the way."""

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import CallAnswered, GateApproved, GateRejected, ProposedAction, ToolFinished, ToolStarted
from agent.vocabulary.reasons import Disclosure, not_run, rejected
from bp import BThreadBody, Refusals, bthread, sync, where

__all__ = ["carry_out"]


@bthread
def carry_out(call: ToolCall, disclosure: Disclosure = "full") -> BThreadBody:
    """Propose `call`, wait for the gate, run the tool, answer: exactly one answer for each call.

    disclosure: what the answer tells of the reasons for which a call was refused.
    """

    def unexecuted(refusals: Refusals) -> CallAnswered:
        return not_run(call.id, refusals, disclosure)

    said = yield sync(request=ProposedAction(call), otherwise=unexecuted)
    if isinstance(said, CallAnswered):
        return
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateRejected):
        yield sync(request=rejected(call.id, said.refusals, disclosure))
        return
    said = yield sync(request=ToolStarted(call), otherwise=unexecuted)
    if isinstance(said, CallAnswered):
        return
    finished = yield sync(wait_for=where(ToolFinished, call=call))
    yield sync(request=CallAnswered(call.id, finished.result, finished.is_error, images=finished.images))
