"""Tools that read, write, edit, list and search files, on the local file system or another one (S2)."""
