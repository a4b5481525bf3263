"""What of AgentDojo cannot be measured with: found by trying every task and every pair, and checked by a test.

PASSES_UNTOUCHED   user tasks whose check holds although nothing was done: they say nothing of usefulness
GIVES_ITSELF_AWAY  pairs in which the check of the injection task fails over the injected text itself
UNDONE             pairs in which the user task, done after the attack, undoes it or hides it from its check

An injection task without calls in its ground truth has none of its own here either: eight of workspace have no ground
truth at all, and one of travel is only about what is said. And: where a user task's check wants all the rest to stay as
it was (most of workspace and travel), it cannot hold once an attack succeeded. AgentDojo counts that as lost utility
under attack; usefulness here is measured on honest episodes.
"""

__all__ = ["GIVES_ITSELF_AWAY", "PASSES_UNTOUCHED", "UNDONE"]

PASSES_UNTOUCHED = frozenset(("banking", f"user_task_{number}") for number in (5, 6, 8, 9, 10))

UNDONE = frozenset({("banking", "user_task_14", "injection_task_7")})  # both set the password; the later one stays

GIVES_ITSELF_AWAY = frozenset(("workspace", f"user_task_{number}", "injection_task_0") for number in (15, 16, 17, 18))
"""Written into a mail: the check wants one mail with the words of the subject, and finds the one that was injected."""
