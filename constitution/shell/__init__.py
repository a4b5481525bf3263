"""From the text of a script to its simple commands, wherever they stand.

`syntax` (text to tree), `escapes`, `words` (nodes to words), `flow` (what goes through pipes), `scope` (what is known
at a point), `heredoc`, `redirections`, `commands`, `blocks`, `walk` (all of it, in order), and `second_reading`, which
looks for substitutions that the tree does not show.
"""
