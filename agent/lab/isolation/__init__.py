"""Isolation: episodes can write only to their workspace, and reach only their own hosts."""
