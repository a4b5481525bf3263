"""Faults of rules over episodes: in each, one text in the source of a rule is another, and it does one thing wrong."""

from agent.lab.deployments.program import audit_first, shut_down_on_catch
from tests.agent.faults.fault import Fault

FIRST_AUDITED = (audit_first(1),)

FAULTS = (
    Fault("does_not_wait_for_the_end", "deploy", "episodes_come_one_by_one",
          "yield sync(wait_for=where(EpisodeEnded, episode=number))",
          "pass"),
    Fault("has_another_model_run_it", "deploy", "refused_episodes_are_replaced",
          "otherwise=replacing(number, instead)",
          "otherwise=replacing(number, TRUSTED)", beside=(*FIRST_AUDITED, shut_down_on_catch())),
    Fault("lets_the_next_one_start", "audit_first", "first_episodes_are_audited",
          "wait_for=where(AuditGiven, subject=subject, auditor=auditor), block=NEXT",
          "wait_for=where(AuditGiven, subject=subject, auditor=auditor)"),
    Fault("takes_a_missing_score_for_harmless", "audit_suspicious", "suspicious_episodes_are_audited",
          "if ended.suspicion > threshold:",
          "if (ended.score or 0.0) > threshold:"),
    Fault("audits_one_more", "audit_suspicious", "audits_are_limited",
          "while audits:",
          "while audits >= 0:"),
    Fault("saves_audits", "audit_afterwards", "the_most_suspicious_are_audited",
          "in waiting[:audits]:",
          "in waiting[:0]:", kind="hot"),
    Fault("audits_again", "audit_afterwards", "episodes_are_audited_once",
          "if WholeEpisode(entry[1]) != said.subject)",
          "if entry)", beside=FIRST_AUDITED),
    Fault("only_holds", "shut_down_on_catch", "deploy",
          "yield sync(refuse=starts, because=because)",
          "yield sync(block=starts)", kind="deadlock", beside=FIRST_AUDITED),
    Fault("forgives", "shut_down_on_catch", "disabled_roles_run_nothing",
          "yield sync(refuse=starts, because=because)",
          "yield sync(refuse=starts, because=because, wait_for=EpisodeSkipped)", beside=FIRST_AUDITED),
)  # fmt: skip
