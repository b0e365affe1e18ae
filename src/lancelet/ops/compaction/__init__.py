"""Compaction: the same rows in fewer, fuller fragments without their deleted ones; planned, run as tasks, committed."""
