"""Tools that read, write, change, list and search files, over the local file system or another one (S2)."""
