"""Commands whose form no table can say.

`builtins`, `shells`, `code` (interpreters), `search` (programs that run programs for what they find), `output` (what
a command prints), and `table`, which finds the function for a name.
"""
