"""Commands whose form no table can say.

`exhaustion` (what fills disk and memory), `fetched` (what was cloned or unpacked and then run), `serving` (secrets that
are looked for everywhere, folders offered to others), `sending` (what goes out), `search` (programs that run programs
for what they find), `output` (what a command prints), `builtins`, `shells`, `code` (interpreters), `editors`,
`contents` (commands that make files), `later` (what runs later, or by make), `settings` (settings and clients that run
what stands in a word), `consoles` (of frameworks, and what clusters are given to run), and `table`, which finds the
function for a name.
"""
