"""Bridges to other frameworks; each module needs the package that it is named for, which no extra of ours installs."""
