"""What programs do with their words, as tables that read like a statute.

`options` (words become options and operands), `program` (what a row says), then the rows: `files`, `system`,
`running` (processes, services, schedules), `guards` (what guards a machine, and what attacks one), `spies` (what
listens and watches), `network`, `clouds`, `clusters`, `schedulers` (jobs), `stores` (databases, backups, secrets),
`keepers` (who shows keys), `versions` (version control), `packages`, `development`, `containers`, `windows`,
`escapes` (options that are commands), `publishing`, `fetching`, `messages`, `pipelines` (work elsewhere), `queues`,
`preferences` (settings for every project), `clients` (of databases), `harmless`; and `table`, which finds the rows of
a program.
"""
