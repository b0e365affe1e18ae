"""Merging rows into a table by key: update, insert, delete, in one commit and in bounded memory."""
