"""Indexes: what they can be asked, their files read and written, one folder for each type."""
