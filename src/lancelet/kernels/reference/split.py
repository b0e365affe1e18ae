"""Byte stream split in NumPy."""
