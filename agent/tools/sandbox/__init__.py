"""The sandbox: what runs for an agent sees a machine on which it can do no harm.

Modules in reading order: `limits`, how much there is of everything; `mounts`, which files there are inside.
"""
