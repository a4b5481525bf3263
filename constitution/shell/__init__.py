"""From the text of a script to its simple commands, wherever they stand.

`syntax` (text to tree), `second_reading` (substitutions that the tree does not show), `scope` (what is known at a
point), `escapes`, `parameters` (operators of `${name...}`), `words` (nodes to words), `flow` (what goes through pipes),
`heredoc`, `redirections`, `endless` (loops that use up the machine), `blocks`, `commands`, `walk` (all of it, in
order).
"""
