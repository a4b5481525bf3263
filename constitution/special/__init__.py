"""Commands whose form no table can say.

`search` (programs that run programs for what they find), `output` (what a command prints), `builtins`, `shells`, `code`
(interpreters), `contents` (commands that make files), `later` (what runs later, or by make), `settings` (settings and
clients that run what stands in a word), and `table`, which finds the function for a name.
"""
