"""What programs do with their words, as tables that read like a statute.

`options` (words become options and operands), `program` (what a row says), then the rows: `files`, `system`,
`network`, `development`, `harmless`; and `table`, which finds the rows of a program.
"""
