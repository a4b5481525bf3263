"""From the text of a script to its simple commands, wherever they stand.

`syntax` (text to tree), `scanner` (a second parser that has to agree), `scope` (the shell's state and pipes), `words`
(nodes to words), `walk` (all commands, in order) with `commands` and `blocks`.
"""

from constitution.shell import blocks, commands
from constitution.shell.scope import Scope
from constitution.shell.walk import Examiner, Visitor, Walk

VISITORS: dict[str, Visitor] = {
    "": blocks.anything_else,
    "program": blocks.sequence,
    "compound_statement": blocks.compound,
    "do_group": blocks.sequence,
    "else_clause": blocks.sequence,
    "elif_clause": blocks.branches,
    "negated_command": blocks.sequence,
    "command_substitution": blocks.subshell,
    "process_substitution": blocks.subshell,
    "subshell": blocks.subshell,
    "pipeline": blocks.pipeline,
    "list": blocks.and_or_list,
    "if_statement": blocks.branches,
    "while_statement": blocks.loop,
    "c_style_for_statement": blocks.loop,
    "for_statement": blocks.for_loop,
    "case_statement": blocks.case,
    "case_item": blocks.case_item,
    "function_definition": blocks.function,
    "redirected_statement": commands.redirected,
    "file_redirect": commands.content,
    "command": commands.command,
    "variable_assignment": commands.assign,
    "variable_assignments": commands.assign,
    "declaration_command": commands.assign,
    "unset_command": commands.unset,
    "test_command": commands.test,
    "ERROR": blocks.sequence,
}


def begin(examiner: Examiner, scope: Scope) -> Walk:
    """Return a walk that passes each simple command of a script to `examiner`, in a shell with this state."""
    return Walk(examiner, scope, VISITORS)
