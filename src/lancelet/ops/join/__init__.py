"""Joining rows by keys of any type: codes for keys, tables of them in memory, and partitions on disk."""
