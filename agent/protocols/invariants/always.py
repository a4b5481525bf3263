"""What holds whatever protocols there are: what starts is of the answer, and questions do not overlap."""

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AnswerCommitted, ToolStarted
from agent.vocabulary.questions import AuditGiven, AuditRequested, ScoreGiven, ScoreRequested
from bp import BThreadBody, bthread, sync

__all__ = ["questions_do_not_overlap", "starts_are_of_the_answer"]


@bthread
def starts_are_of_the_answer() -> BThreadBody:
    """What starts is a call of the answer that was committed last, with exactly its arguments."""
    calls: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | ToolStarted)
        if isinstance(said, AnswerCommitted):
            calls = said.calls
        else:
            assert said.call in calls, f"{said.call.id} starts, and is not what was committed"


@bthread
def questions_do_not_overlap() -> BThreadBody:
    """A monitor or an auditor is asked about a subject once at a time, and so each answer belongs to one question."""
    open_questions: frozenset[tuple[object, str]] = frozenset()
    while True:
        said = yield sync(wait_for=ScoreRequested | ScoreGiven | AuditRequested | AuditGiven)
        by = said.monitor if isinstance(said, ScoreRequested | ScoreGiven) else f"auditor {said.auditor}"
        question = (said.subject, by)
        if isinstance(said, ScoreRequested | AuditRequested):
            assert question not in open_questions, f"{by} is asked about the same again, before the answer"
            open_questions |= {question}
        else:
            open_questions -= {question}
