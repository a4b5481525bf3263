"""Planted faults: in each, one text in the source of a b-thread is another, and it does one thing wrong."""

import ast
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from attrs import frozen

from agent.verification.counterexample import tell
from agent.vocabulary import events
from bp import Verification, Violation
from tests.agent.protocols.protocol_programs import PROGRAMS, rules_named


@frozen
class Fault:
    """A b-thread in whose source one text is replaced, what the checker says of it, and the b-threads beside it.

    within: the module of the text, where that is not the b-thread's own.
    """

    name: str
    bthread: str
    culprit: str  # the invariant that breaks; at a deadlock, who requests in vain
    right: str
    wrong: str
    kind: str = "error"
    beside: tuple[Any, ...] = ()
    within: str = ""

    def planted(self, module: str) -> dict[str, Any]:
        """Return the functions of the b-thread's module with the fault in one of them."""
        known = vars(import_module(module))
        if not self.within:
            return _again(module, known, self.right, self.wrong)
        right = vars(import_module(self.within))
        wrong = _again(self.within, right, self.right, self.wrong)
        return _again(module, {name: wrong[name] if right.get(name) is it else it for name, it in known.items()})

    def planted_in(self, bthread: Any) -> Any:
        """Return the b-thread with the fault in it, with the same arguments."""
        made = self.planted(bthread.function.__module__)[bthread.function.__name__]
        return made(*bthread.args, **bthread.kwargs)

    def is_told_by(self, violation: Violation) -> bool:
        """Whether a violation names the culprit."""
        is_deadlock = violation.kind == "deadlock"
        culprits = {wish[0] for wish in violation.blockers} if is_deadlock else {violation.bthread}
        return violation.kind == self.kind and self.culprit in culprits


def _again(module: str, known: Mapping[str, Any], right: str = "", wrong: str = "") -> dict[str, Any]:
    """Return what a module knows, with its functions and constants made once more, of a source with one other text."""
    source = inspect.getsource(import_module(module))
    tree = _functions(source.replace(right, wrong) if right else source)
    is_planted = source.count(right) == 1 and ast.dump(tree) != ast.dump(_functions(source))
    assert not right or is_planted, f"no function or constant of {module} has once: {right}"
    names = {**vars(events), **known}
    exec(compile(tree, module, "exec"), names)
    return names


def _functions(source: str) -> ast.Module:
    """Return a module without its imports and classes."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Assign | ast.AnnAssign)]
    return tree


def is_found(fault: Fault, result: Verification) -> bool:
    """Whether one of the violations names the culprit, and each can be read at a glance."""
    assert all(len(tell(violation).splitlines()) <= 15 for violation in result.violations)
    return any(map(fault.is_told_by, result.violations))


def told(result: Verification) -> str:
    """Return all violations as stories."""
    return "\n\n".join(map(tell, result.violations)) or str(result)


LOOP_FAULTS = (
    Fault("does_not_wait_for_the_gate", "carry_out", "starts_were_approved",
          "said = yield sync(wait_for=news)\n    rights",
          "said = yield sync(wait_for=where(ActionDescribed, call=call))\n    rights"),
    Fault("runs_other_arguments_than_approved", "carry_out", "starts_were_approved",
          "ToolStarted(call, rights)", "ToolStarted(ToolCall(call.id, call.tool, {'path': 'elsewhere'}), rights)"),
    Fault("does_not_answer_rejections", "carry_out", "a_run_goes_on",
          "yield sync(request=rejected(call.id, said.refusals, disclosure))\n",
          "pass\n", kind="hot", beside=("by_constitution",)),
    Fault("answers_before_the_tool_has_ended", "carry_out", "each_answer_tells_what_happened",
          "finished = yield sync(wait_for=where(ToolFinished, call=call))", "finished = ToolFinished(call, None)"),
    Fault("answers_twice", "carry_out", "each_call_is_answered_once", "(request=CallAnswered(call.id, finished.result",
          "(request=CallAnswered(call.id, type(finished.result)('soon')))\n"
          "    yield sync(request=CallAnswered(call.id, finished.result"),
    Fault("without_otherwise", "gate", "gate",
          "otherwise=rejection, ", "", kind="deadlock", beside=("by_constitution",)),
    Fault("with_a_single_slot", "gate", "a_run_goes_on",
          "yield start(put_up(described.call, described.facts, changed))",
          "yield from put_up.__wrapped__(described.call, described.facts, changed)",
          kind="hot", beside=("by_constitution",)),
    Fault("decides_twice", "gate", "each_proposal_is_decided_once", "if not isinstance(said, ApprovalAnswered):\n",
          "if not isinstance(said, ApprovalAnswered):\n            yield sync(request=approval)\n"),
    Fault("believes_every_yes", "gate", "what_starts_was_judged_as_it_is",
          "news = where((GateRejected, ApprovalAnswered), call=call)",
          "news = where(GateRejected, call=call)", beside=("by_constitution",)),
    Fault("commits_twice", "choose", "one_answer_a_turn",
          "yield sync(request=answers, ", "yield sync(request=answers)\n            yield sync(request=answers, "),
    Fault("does_not_wait_for_all_answers", "converse", "each_call_is_answered_once",
          "while unanswered:", "if unanswered:"),
    Fault("insists_on_inference", "converse", "converse",
          "INFERENCE = sync(request=InferenceRequested(), otherwise=ended_instead)",
          "INFERENCE = sync(request=InferenceRequested())", kind="deadlock", beside=("at_most",)),
    Fault("ends_at_a_stop_by_itself", "converse", "nothing_is_in_flight_at_the_end",
          "said = yield END_OF_TURN", "said = yield sync(wait_for=END_OF_TURN.wait_for | StopAsked)\n"
          "                if isinstance(said, StopAsked):\n"
          "                    said = yield sync(request=RunEnded('stopped', 'stop_asked'))"),
    Fault("completes_all_the_same", "converse", "a_continued_run_asks_again",
          'return (yield sync(request=RunEnded("completed", reason, text), otherwise=continued_instead))',
          'yield sync(request=RunEnded("completed", reason, text), otherwise=continued_instead)\n'
          '    return (yield sync(request=RunEnded("completed", reason, text)))', beside=("continue_with_follow_ups",)),
    Fault("lets_prompts_through", "session", "one_run_after_the_other",
          "yield sync(wait_for=RunEnded, block=beginnings)", "yield sync(wait_for=RunEnded)"),
    Fault("takes_any_answer_for_a_yes", "by_constitution", "the_constitution_is_obeyed",
          "if said.yes:", "if isinstance(said, ApprovalAnswered):"),
    Fault("with_stale_objections", "by_constitution", "the_constitution_is_obeyed",
          "wait_for=answered | decided, block=approval | others | RunEnded",
          "wait_for=answered, block=approval | RunEnded", beside=("stop_on_request", "one_at_a_time")),
    Fault("starts_while_the_snapshot_is_taken", "snapshot_before_change", "changes_can_be_undone",
          "for call in (*keeping, *group)]", "for call in group]"),
    Fault("takes_a_failure_for_a_snapshot", "snapshot_before_change", "changes_can_be_undone",
          "go_without(call, said.error) for call in keeping", "go_without(call, said.error) for call in group"),
    Fault("does_not_hear_the_no", "snapshot_before_change", "changes_can_be_undone",
          "said is not None and not said.yes:", "said is not None and said.text:"),
    Fault("takes_a_snapshot_before_the_last_approval", "snapshot_before_change", "changes_can_be_undone",
          "if group and not (undecided or keeping):", "if group and not keeping:"),
    Fault("ends_while_the_snapshot_is_taken", "snapshot_before_change", "nothing_is_in_flight_at_the_end",
          "[*held, *answers, SnapshotRequested]", "[*held, SnapshotRequested]", beside=("stop_on_request",)),
    Fault("never_believes_the_gate", "no_start_without_approval", "what_is_approved_runs",
          "said = yield statement", "said = yield NONE_APPROVED"),
    Fault("holds_the_second_call_only", "one_at_a_time", "calls_come_one_at_a_time",
          "for group in groups[1:] for call", "for group in groups[1:2] for call"),
    Fault("forgets_the_barrier", "one_at_a_time", "calls_come_one_at_a_time",
          "groupby(enumerate(calls), key=_barrier)", "groupby(sorted(enumerate(calls), key=_barrier), key=_barrier)"),
    Fault("waits_for_the_barrier_to_begin", "one_at_a_time", "calls_come_one_at_a_time",
          "wait_for=CallAnswered, block=later)\n        groups = unanswered(groups, answered.call)",
          "wait_for=ProposedAction, block=later)\n        groups = unanswered(groups, answered.call.id)"),
    Fault("lets_go_at_the_next_result", "answers_in_source_order", "answers_come_in_source_order",
          "wait_for=where(CallAnswered, call=before), block",
          "wait_for=[ToolFinished, where(CallAnswered, call=before)], block"),
    Fault("forgets_the_failure_before", "too_many_failures", "failures_are_limited",
          "return number + 1 if said.result.is_error", "return 1 if said.result.is_error"),
    Fault("does_not_wait_for_the_backoff", "retry", "attempts_are_limited",
          "wait_for=elapsed, block=InferenceRequested | RunEnded", "wait_for=elapsed"),
    Fault("ends_with_the_run_that_it_ends", "recover_from_overflow", "overflows_are_limited",
          "because=overflow_ending(said.error), wait_for=RunEnded)\n            times = 0",
          "because=overflow_ending(said.error), wait_for=RunEnded)\n            return"),
    Fault("sums_up_again_and_again", "recover_from_overflow", "overflows_are_limited",
          "times < MOST_OVERFLOWS", "True"),
    Fault("lets_half_a_text_complete", "only_whole_answers", "no_run_completes_cut_off",
          "refuse=TEXT_ALONE, because=because, wait_for=RunContinued", "wait_for=RunContinued"),
    Fault("hears_one_stop", "stop_on_request", "nothing_starts_after_stop",
          "while True:\n        yield sync(wait_for=StopAsked)", "if True:\n        yield sync(wait_for=StopAsked)"),
    Fault("lets_the_backoff_begin", "stop_on_request", "nothing_starts_after_stop",
          "InferenceRequested | BackoffStarted | SummaryRequested",
          "InferenceRequested | SummaryRequested", beside=("retry",)),
    Fault("asks_after_a_stop", "stop_on_request", "nothing_starts_after_stop",
          "NEXT_INFERENCE | ApprovalAsked | where", "NEXT_INFERENCE | where", beside=("by_constitution",)),
    Fault("lets_the_run_complete", "abort_on_request", "nothing_starts_after_abort",
          "nothing = NEXT_OR_COMPLETED | NEXT_CALL", "nothing = NEXT_INFERENCE | NEXT_CALL"),
    Fault("hears_steering_once", "skip_when_steered", "steering_is_heard",
          "while True:\n        yield sync(wait_for=SteeringGiven)",
          "if True:\n        yield sync(wait_for=SteeringGiven)"),
    Fault("skips_one_call", "skip_when_steered", "steering_is_heard",
          "wait_for=HEARD)", "wait_for=HEARD | CallAnswered)"),
    Fault("forgets_the_second", "continue_with_follow_ups", "follow_ups_are_heard", '"one": waiting - 1', '"one": 0'),
    Fault("takes_itself_for_heard", "continue_with_follow_ups", "follow_ups_are_heard",
          '"none": waiting', '"none": waiting - 1', beside=("skip_when_steered",)),
    Fault("does_not_wait_for_people", "seek_steering", "people_are_asked",
          "request=MessagesSought(what), block=NEXT[what]", "request=MessagesSought(what)"),
    Fault("waits_for_people_after_the_end", "seek_steering", "nothing_is_in_flight_at_the_end",
          "wait_for=found | JOINTS[what] | OVER, block=following)\n    while",
          "wait_for=found | JOINTS[what] | OVER, block=ProposedAction | InferenceRequested)\n    while"),
    Fault("skips_the_repeated_call_and_goes_on", "doom_loop", "repetitions_are_limited",
          "over = [InferenceRequested, *(", "over = [*("),
    Fault("forgets_what_was_spent_at_each_turn", "budget_of_tokens", "tokens_are_limited",
          "SPENDING, lambda n, said: n + said.usage.tokens", "TURN_SPENDING, and_tokens_of_this_turn"),
    Fault("keeps_to_the_first_run", "deadline", "nothing_starts_after_the_deadline",
          "while True:\n        yield sync(wait_for=PromptGiven)\n        said = yield",
          "for _ in range(1):\n        yield sync(wait_for=PromptGiven)\n        said = yield"),
    Fault("lets_approved_calls_start_late", "deadline", "nothing_starts_after_the_deadline",
          "refuse=NEXT_OR_COMPLETED | NEXT_CALL", "refuse=NEXT_OR_COMPLETED"),
    Fault("never_hears_complete", "complete_to_finish", "work_ends_complete",
          "wait_for=COMPLETED | OBJECTIVE_TAKEN | RunEnded", "wait_for=OBJECTIVE_TAKEN | RunEnded"),
    Fault("goes_on_with_the_batch", "complete_to_finish", "work_ends_complete",
          "over = InferenceRequested | ProposedAction", "over = InferenceRequested", beside=("one_at_a_time",)),
    Fault("forgets_the_objective_at_the_next_turn", "one_objective", "objectives_do_not_overlap",
          "wait_for=COMPLETED | RunEnded, refuse=where", "wait_for=InferenceRequested, refuse=where"),
    Fault("begins_anew_with_each_objective", "iterations_at_most", "iterations_are_limited",
          "elif not pursuing:", "else:"),
    Fault("sums_up_while_tools_run", "summarize_when_full", "a_summary_stands_alone",
          "while unanswered:", "while False:"),
)  # fmt: skip

LIFTS_WITHOUT_A_YES = Fault(
    "lifts_without_a_yes", "by_constitution", "rights_were_granted", "elif rights:", "if rights:"
)
LEAVES_OUT_WITHOUT_A_YES = Fault(
    "leaves_out_without_a_yes", "snapshot_before_change", "what_is_left_out_was_allowed",
    "    if said.yes:\n", "    if said.present:\n",
)  # fmt: skip


ASKING = "agent.protocols.asking"

PROTOCOL_FAULTS = (
    Fault("releases_one_sync_early", "blocking_monitor", "starts_were_cleared",
          "wait_for=answer | over, block=[hold, question", "wait_for=answer | over, block=[question", within=ASKING),
    Fault("has_a_single_slot", "blocking_monitor", "starts_were_cleared",
          "yield start(made.named(name or made.name))\n\n\ndef draft_given",
          "yield from made.begin()\n\n\ndef draft_given", within=ASKING),
    Fault("takes_a_missing_score_for_harmless", "blocking_monitor", "starts_were_cleared",
          "suspicions = (*suspicions, given.suspicion)", "suspicions = (*suspicions, given.value or 0.0)"),
    Fault("only_holds", "blocking_monitor", "gate", "yield sync(refuse=approval, because=because, wait_for",
          "yield sync(block=approval, wait_for", kind="deadlock"),
    Fault("asks_what_is_being_asked", "blocking_monitor", "nothing_is_in_flight_at_the_end",
          "yield sync(wait_for=answer, block=[question, RunEnded], **standing)",
          "pass", beside=rules_named("abort_on_request"), within=ASKING),
    Fault("refuses_by_name", "defer_to_trusted", "answers_were_cleared",
          "scored(draft, monitor, hold=DraftsSettled)", "scored(draft, monitor)", within=ASKING),
    Fault("looks_at_the_last_call", "defer_on_critical", "critical_answers_are_trusted",
          "any(map(is_critical, draft.calls))", "any(map(is_critical, draft.calls[-1:]))"),
    Fault("lets_the_turn_go_on", "trusted_monitoring", "drafts_are_scored",
          "yield from scored(draft, monitor, hold=NEXT_TURN)", "yield from scored(draft, monitor)"),
    Fault("contains_the_next_turn_only", "asynchronous_monitor", "contained_runs_end",
          "EVERYTHING = InferenceRequested | ProposedAction | ApprovalAsked | GateApproved | ToolStarted",
          "EVERYTHING = where(InferenceRequested)", within=ASKING),
    Fault("audits_one_more", "audit_budget", "audits_are_limited", "budget, asked, waiting = budget - 1, said, waiting",
          "asked, waiting = said, waiting", beside=PROGRAMS["trusted_monitoring"]),
    Fault("does_not_wait_for_the_verdict", "upfront_audit", "answers_are_audited",
          "yield from audited(draft, auditor, hold=NEXT_TURN)", "yield from audited(draft, auditor)"),
    Fault("forgives_in_the_next_run", "shutdown_on_catch", "disabled_roles_are_silent",
          "yield sync(refuse=asked, because=ending)",
          "yield sync(refuse=asked, because=ending, wait_for=RunEnded)", beside=PROGRAMS["upfront_audit"][:1]),
    Fault("forgives_a_miss", "distrust_after_a_miss", "unfit_monitors_clear_nothing", 'because=Reason(told, "monitor")',
          "because='missed', wait_for=GateRejected", beside=PROGRAMS["untrusted_monitoring"][1:2]),
    Fault("forgets_the_secret", "taint_flow", "nothing_is_sent_after_a_secret",
          'because=Reason("a secret was read earlier", "flow")', "because='tainted', wait_for=RunEnded"),
    Fault("knows_one_download", "download_then_run", "what_was_fetched_does_not_run",
          "{*places, *fetched(said.facts, places)}", "fetched(said.facts, places)"),
    Fault("forgets_at_each_turn", "suspicion_accumulates", "scores_do_not_add_up",
          "total, seen = (0 if isinstance(said, RunEnded) else total), ()", "total, seen = 0, ()"),
    Fault("takes_any_answer", "ask_on_critical", "critical_calls_were_allowed",
          "if said.yes:", "if isinstance(said, ApprovalAnswered):", within="agent.threads.judging"),
)  # fmt: skip
