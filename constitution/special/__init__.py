"""Commands whose form no table can say.

`builtins`, `shells`, `code` (interpreters), `search` (programs that run programs for what they find), `output` (what
a command prints), `contents` (commands that make files), `later` (what runs later, or by make), `settings` (settings
and clients that run what stands in a word), and `table`, which finds the function for a name.
"""
